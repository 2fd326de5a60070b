"""Data on its way into networks: batches and who makes them, files of records, images and what is done to them."""

__all__: list[str] = []
