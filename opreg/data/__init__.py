"""Data on its way into networks: iterators of batches, files of records, images and their augmentation."""

__all__: list[str] = []
