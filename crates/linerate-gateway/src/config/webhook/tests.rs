//! Tests of the options of webhooks.

use crate::config::Loader;

#[test]
fn webhooks_that_cannot_work_are_refused() {
    let url = "url = \"http://localhost/\"\nsecret = \"x\"\n";
    for (webhook, message) in [
        (
            "",
            "webhook[0].url = (not shown) must be an https://, http://, redis://, rediss://, nats:// or tls:// URL",
        ),
        (
            "url = \"http://me:key@localhost/\"",
            "webhook[0].url = (with a user) must not contain a user",
        ),
        (
            "url = \"http://localhost/\"",
            "webhook[0].secret = (none) is required",
        ),
        (
            &format!("{url}batch_max = 0"),
            "webhook[0].batch_max = 0 must be between 1 and 1000",
        ),
        (
            &format!("{url}batch_bytes_max = 1"),
            "webhook[0].batch_bytes_max = 1 must be between 1024 and 16777216",
        ),
        (
            &format!("{url}queue_bytes_max = 1"),
            "webhook[0].queue_bytes_max = 1 must be between 65536 and 1073741824",
        ),
        (
            &format!("{url}headers = {{ Webhook-Id = \"x\" }}"),
            "webhook[0].headers = Webhook-Id has a prefix that the signature uses",
        ),
        (
            &format!("{url}tls_key = \"a.pem\""),
            "webhook[0].tls_key = a.pem requires both tls_certificate and tls_key",
        ),
        (&format!("{url}events = [\"slept\"]"), "slept"),
        (
            &format!("{url}headers = {{ X-Pusher-Key = \"x\" }}"),
            "webhook[0].headers = X-Pusher-Key has a prefix that the signature uses",
        ),
        (
            "url = \"http://localhost/\"\nformat = \"pusher\"",
            "webhook[0].format = pusher requires protocols.pusher, and app_id, key and secret",
        ),
        (
            &format!("{url}format = \"pusher\""),
            "webhook[0].secret = (secret) is only for the format standard over HTTP",
        ),
        (
            "url = \"http://localhost/\"\nformat = \"pusher\"\nevents = [\"connected\"]",
            "webhook[0].events = connected is not an event of the format pusher",
        ),
        (
            &format!("{url}events = [\"subscription_count\"]"),
            "webhook[0].events = subscription_count requires protocols.pusher, and \
             subscription_counts of [pusher]",
        ),
        (
            "url = \"redis://localhost\"",
            "webhook[0].stream =  must be the key of a Redis Stream",
        ),
        (
            "url = \"nats://localhost\"\nsubject = \"a.*\"",
            "webhook[0].subject = a.* must be a NATS subject without wildcards",
        ),
        (
            "url = \"nats://localhost\"\nsubject = \"a\"\nformat = \"pusher\"",
            "webhook[0].format = pusher is only for https:// and http:// URLs",
        ),
        (
            "url = \"redis://localhost\"\nstream = \"a\"\nheaders = { A = \"b\" }",
            "webhook[0].headers = A is only for https:// and http:// URLs",
        ),
        (
            &format!("{url}stream = \"a\""),
            "webhook[0].stream = a is only for redis:// URLs",
        ),
        (
            "url = \"redis://:hunter2@localhost\"\nstream = \"a\"\nstream_length_max = 0",
            "webhook[0].stream_length_max = 0 must be between 1 and 1000000000",
        ),
        (
            &format!("{url}[[webhook]]\nname = \"app\"\n{url}"),
            "webhook[1].name = app is used by two webhooks",
        ),
    ] {
        let text = format!("[[webhook]]\nname = \"app\"\n{webhook}\n");
        let error = Loader::new().with_text("test.toml", &text).load();
        let error = error.unwrap_err().to_string();
        assert!(error.contains(message), "{webhook}: {error}");
        assert!(!error.contains("hunter2"), "{error}");
    }
}
