"""Data loading: iterators of batches, record files, images and their augmentation."""

__all__: list[str] = []
