//! Masking, UTF-8 and newline kernels for WebSocket, dispatched at run time.
