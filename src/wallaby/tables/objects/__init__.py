"""Objects in a bucket: requests to S3, and files whose parts are there but which nobody sees yet."""
