"""Data loading: iterators of batches, record files, images and their augmentation."""
