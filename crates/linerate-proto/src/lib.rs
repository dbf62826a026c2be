//! A sans-IO WebSocket engine (RFC 6455) for both roles: frames, messages, close and the opening handshake.
#![forbid(unsafe_code)]
