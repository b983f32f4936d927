"""The names of S3, loaded on first use: obstore is large, and most stores are directories."""

from caudal import late

late.offer(
    "caudal.store",
    {"S3Settings": "caudal.store.s3_settings", "S3Store": "caudal.store.s3"},
)
