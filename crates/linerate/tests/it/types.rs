//! Guarantees of the types: they can be sent to other threads, and connections are small.

use linerate::{
    Binary, Client, Counters, Error, Frames, Message, Options, Reader, Receiver, Sender, Server,
    Text, WebSocket, Writer,
};

const fn assert_send_sync<T: Send + Sync>() {}
const fn assert_static<T: 'static>() {}

#[test]
fn public_types_are_send_and_sync() {
    assert_send_sync::<Client>();
    assert_send_sync::<Counters>();
    assert_send_sync::<Error>();
    assert_send_sync::<Frames>();
    assert_send_sync::<Message>();
    assert_send_sync::<(Binary, Text)>();
    assert_send_sync::<Options>();
    assert_send_sync::<(Reader<'static>, Writer<'static>)>();
    assert_send_sync::<(Receiver, Sender)>();
    assert_send_sync::<Server>();
    assert_send_sync::<WebSocket>();
    assert_static::<(WebSocket, Sender, Receiver, Client, Server)>();
}

#[test]
fn futures_can_be_spawned() {
    const fn assert_send<T: Send>(_: &T) {}
    #[allow(dead_code, reason = "it only has to compile")]
    async fn uses(mut ws: WebSocket) {
        let future = ws.recv();
        assert_send(&future);
        drop(future);
        assert_send(&ws.send("x"));
        assert_send(&ws.flush());
        assert_send(&ws.close(linerate::CloseCode::NORMAL, ""));
        assert_send(&ws.reader());
        let (sender, _receiver) = ws.split();
        assert_send(&sender.writable());
        assert_send(&linerate::connect("ws://localhost/"));
    }
}

#[test]
fn handles_are_one_pointer() {
    let pointer = size_of::<usize>();
    assert_eq!(size_of::<WebSocket>(), pointer);
    assert_eq!(size_of::<(Sender, Receiver)>(), 2 * pointer);
    println!(
        "Message: {} bytes, Error: {} bytes, Options: {} bytes",
        size_of::<Message>(),
        size_of::<Error>(),
        size_of::<Options>()
    );
    assert!(size_of::<Message>() <= 4 * pointer);
}

#[test]
fn errors_say_what_happened_and_why() {
    use std::error::Error as _;
    let io = Error::from(std::io::Error::other("cable cut"));
    assert_eq!(io.to_string(), "cable cut");
    assert!(io.source().is_none(), "the cause is printed already");
    assert_eq!(
        Error::Abnormal.to_string(),
        "connection ended without a closing handshake"
    );
    assert!(Error::Refused { status: 404 }.to_string().contains("404"));
}
