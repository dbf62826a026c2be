//! Access-log formats, aggregation and the upload session behind the live log viewer.
#![forbid(unsafe_code)]
