//! Tests of Centrifuge commands, in JSON over a WebSocket.

use std::time::Duration;

use serde_json::json;

use crate::support::{Gateway, Json, closed, error, seconds_from_now, token};

#[tokio::test]
async fn a_client_connects_and_is_told_what_it_has_to_know() {
    let gateway = Gateway::open("").await;
    let mut client = Json::open(&gateway).await;
    let reply = client.ask(r#"{"id":7,"connect":{"name":"js"}}"#).await;
    assert_eq!(reply["id"], 7);
    let connect = &reply["connect"];
    assert_eq!(
        (&connect["ping"], &connect["pong"]),
        (&json!(25), &json!(true))
    );
    assert!(
        connect["version"]
            .as_str()
            .unwrap()
            .starts_with("linerate ")
    );
    assert_eq!(connect["node"], gateway.info().id);
    assert_eq!(gateway.info().clients, 1);
}

#[tokio::test]
async fn publications_reach_subscribers_byte_for_byte() {
    let gateway = Gateway::open("").await;
    let mut client = Json::connect(&gateway).await;
    let reply = client.subscribe("news").await;
    assert_eq!(reply["subscribe"]["offset"].as_u64().unwrap_or(0), 0);
    gateway.publish("news", r#"{"b":1.50,"a":"ü"}"#).await;
    let push = client.next().await;
    assert_eq!(push["push"]["channel"], "news");
    assert_eq!(
        push["push"]["pub"]["data"].to_string(),
        json!({"a":"ü","b":1.5}).to_string()
    );
    assert_eq!(push["push"]["pub"]["offset"], 1);
}

#[tokio::test]
async fn a_client_publishes_where_it_may_and_others_are_told_who_it_was() {
    let gateway = Gateway::open("").await;
    let mut reader = Json::connect(&gateway).await;
    reader.subscribe("demo:x").await;
    let mut writer = Json::connect(&gateway).await;
    let command = r#"{"id":2,"publish":{"channel":"demo:x","data":{"a":1}}}"#;
    let reply = writer.ask(command).await;
    assert_eq!(reply, json!({"id": 2, "publish": {}}));
    let push = reader.next().await;
    assert_eq!(push["push"]["pub"]["data"], json!({"a": 1}));
    assert!(push["push"]["pub"]["info"]["client"].is_string(), "{push}");
    let refused = writer
        .ask(r#"{"id":3,"publish":{"channel":"news","data":{}}}"#)
        .await;
    assert_eq!(error(&refused).0, 103);
}

#[tokio::test]
async fn history_presence_and_stats_answer_subscribers() {
    let gateway = Gateway::open("").await;
    let mut client = Json::connect(&gateway).await;
    let early = client.ask(r#"{"id":2,"history":{"channel":"news"}}"#).await;
    assert_eq!(error(&early).0, 103, "not subscribed yet");
    client.subscribe("news").await;
    for number in 1..=3 {
        gateway.publish("news", &number.to_string()).await;
        client.next().await;
    }
    let reply = client
        .ask(r#"{"id":3,"history":{"channel":"news","limit":2}}"#)
        .await;
    let history = &reply["history"];
    assert_eq!(
        history["publications"].as_array().unwrap().len(),
        2,
        "{reply}"
    );
    assert_eq!(history["offset"], 3);
    let epoch = history["epoch"].as_str().unwrap();
    let since = format!(
        r#"{{"id":4,"history":{{"channel":"news","limit":9,"since":{{"epoch":"{epoch}","offset":2}}}}}}"#
    );
    let reply = client.ask(&since).await;
    assert_eq!(reply["history"]["publications"][0]["data"], 3, "{reply}");
    let other = since.replace(epoch, "other");
    assert_eq!(error(&client.ask(&other).await).0, 112);
    let reply = client
        .ask(r#"{"id":5,"presence":{"channel":"news"}}"#)
        .await;
    assert_eq!(
        reply["presence"]["presence"].as_object().unwrap().len(),
        1,
        "{reply}"
    );
    let reply = client
        .ask(r#"{"id":6,"presence_stats":{"channel":"news"}}"#)
        .await;
    assert_eq!(
        reply["presence_stats"],
        json!({"num_clients": 1, "num_users": 1})
    );
}

#[tokio::test]
async fn a_client_gets_the_newest_publication_of_a_cache_unless_it_has_it() {
    let gateway = Gateway::open("[[namespace]]\nname = \"state\"\nrecovery = \"cache\"\n").await;
    let mut client = Json::connect(&gateway).await;
    let first = client
        .ask(r#"{"id":2,"subscribe":{"channel":"state:a","recover":true}}"#)
        .await;
    assert!(first["subscribe"]["recovered"].is_null(), "{first}");
    for number in 1..=3 {
        gateway.publish("state:a", &number.to_string()).await;
        client.next().await;
    }
    let mut late = Json::connect(&gateway).await;
    let reply = late
        .ask(r#"{"id":2,"subscribe":{"channel":"state:a","recover":true}}"#)
        .await;
    let reply = &reply["subscribe"];
    assert_eq!(reply["recovered"], true, "{reply}");
    assert_eq!(reply["publications"], json!([{"data": 3, "offset": 3}]));
    let epoch = reply["epoch"].as_str().unwrap();
    let mut back = Json::connect(&gateway).await;
    for (id, offset, expected) in [
        (2, 3, json!(null)),
        (3, 1, json!([{"data": 3, "offset": 3}])),
    ] {
        let reply = back
            .ask(&format!(
                r#"{{"id":{id},"subscribe":{{"channel":"state:a","recover":true,"epoch":"{epoch}","offset":{offset}}}}}"#
            ))
            .await;
        assert_eq!(reply["subscribe"]["recovered"], true, "{reply}");
        assert_eq!(reply["subscribe"]["publications"], expected, "{reply}");
        let unsubscribe = format!(
            r#"{{"id":{},"unsubscribe":{{"channel":"state:a"}}}}"#,
            id + 10
        );
        back.ask(&unsubscribe).await;
    }
}

#[tokio::test]
async fn deltas_are_for_those_who_ask_where_they_are_allowed() {
    let gateway = Gateway::open(
        "[[namespace]]\nname = \"delta\"\nallow_delta = true\n[[namespace]]\nname = \"whole\"\n",
    )
    .await;
    for (channel, rest, expected) in [
        ("delta:a", r#","delta":"fossil""#, json!(true)),
        ("delta:b", "", json!(null)),
        ("delta:c", r#","delta":"other""#, json!(null)),
        ("whole:a", r#","delta":"fossil""#, json!(null)),
        // SDKs refuse to combine them.
        (
            "delta:d",
            r#","delta":"fossil","filter":"n > 0""#,
            json!(null),
        ),
        (
            "delta:e",
            r#","delta":"fossil","tf":{"key":"k","cmp":"ex"}"#,
            json!(null),
        ),
    ] {
        let mut client = Json::connect(&gateway).await;
        let command = format!(r#"{{"id":2,"subscribe":{{"channel":"{channel}"{rest}}}}}"#);
        let reply = client.ask(&command).await;
        assert_eq!(reply["subscribe"]["delta"], expected, "{command}: {reply}");
        if channel == "delta:e" {
            continue;
        }
        gateway.publish(channel, r#"{"n":1}"#).await;
        let data = &client.next().await["push"]["pub"]["data"];
        let whole = json!({"n": 1});
        let text = json!(r#"{"n":1}"#);
        assert_eq!(*data, if expected == true { text } else { whole });
    }
}

#[tokio::test]
async fn channels_have_ids_for_those_who_ask_where_they_are_allowed() {
    let gateway = Gateway::open(
        "[[namespace]]\nname = \"compact\"\nallow_channel_compaction = true\n[[namespace]]\nname = \"named\"\n",
    )
    .await;
    for (channel, flag, is_compact) in [
        ("compact:a", 1, true),
        ("compact:b", 3, true),
        ("compact:c", 2, false),
        ("named:a", 1, false),
    ] {
        let mut client = Json::connect(&gateway).await;
        let command = format!(r#"{{"id":2,"subscribe":{{"channel":"{channel}","flag":{flag}}}}}"#);
        let reply = client.ask(&command).await;
        let id = &reply["subscribe"]["id"];
        assert_eq!(id.as_u64().is_some_and(|id| id > 0), is_compact, "{reply}");
        gateway.publish(channel, "1").await;
        let push = &client.next().await["push"];
        assert_eq!(push["id"], *id, "{push}");
        assert_eq!(push["channel"].is_null(), is_compact, "{push}");
    }
}

#[tokio::test]
async fn a_client_that_comes_back_gets_what_it_missed() {
    let gateway = Gateway::open("").await;
    let mut client = Json::connect(&gateway).await;
    let reply = client.subscribe("news").await;
    let epoch = reply["subscribe"]["epoch"].as_str().unwrap().to_owned();
    assert_eq!(reply["subscribe"]["recoverable"], true);
    gateway.publish("news", "1").await;
    client.next().await;
    drop(client);
    for number in 2..=4 {
        gateway.publish("news", &number.to_string()).await;
    }
    let mut client = Json::connect(&gateway).await;
    let command = |epoch: &str, offset: u64| {
        format!(
            r#"{{"id":2,"subscribe":{{"channel":"news","recover":true,"epoch":"{epoch}","offset":{offset}}}}}"#
        )
    };
    let reply = client.ask(&command(&epoch, 1)).await;
    let subscribe = &reply["subscribe"];
    assert_eq!(
        (&subscribe["was_recovering"], &subscribe["recovered"]),
        (&json!(true), &json!(true))
    );
    let offsets = subscribe["publications"].as_array().unwrap().iter();
    let offsets: Vec<_> = offsets.map(|one| one["offset"].as_u64().unwrap()).collect();
    assert_eq!(offsets, [2, 3, 4]);
    gateway.publish("news", "5").await;
    assert_eq!(client.next().await["push"]["pub"]["offset"], 5);
    client
        .ask(r#"{"id":3,"unsubscribe":{"channel":"news"}}"#)
        .await;
    let reply = client.ask(&command("other", 1)).await;
    assert_eq!(reply["subscribe"]["was_recovering"], true);
    assert_ne!(reply["subscribe"]["recovered"], true, "{reply}");
}

#[tokio::test]
async fn what_was_missed_and_does_not_fit_into_the_reply_follows_it() {
    let gateway = Gateway::open("[client]\nreply_bytes_max = 1000").await;
    let mut client = Json::connect(&gateway).await;
    let reply = client.subscribe("news").await;
    let epoch = reply["subscribe"]["epoch"].as_str().unwrap().to_owned();
    drop(client);
    let payload = format!("\"{}\"", "x".repeat(200));
    for _ in 1..=10 {
        gateway.publish("news", &payload).await;
    }
    for (since, told) in [(0, vec![1, 2, 3]), (7, vec![8, 9, 10]), (10, vec![])] {
        let mut client = Json::connect(&gateway).await;
        let command = json!({"id": 2, "subscribe": {
            "channel": "news", "recover": true, "epoch": epoch, "offset": since,
        }});
        let reply = client.ask(&command.to_string()).await["subscribe"].take();
        assert_eq!(reply["recovered"], true, "{reply}");
        let publications = reply["publications"].as_array();
        let offsets = publications.into_iter().flatten();
        let mut offsets: Vec<_> = offsets.map(|one| one["offset"].as_u64().unwrap()).collect();
        assert_eq!(offsets, told);
        let newest = reply["offset"].as_u64().unwrap();
        assert_eq!(newest, told.last().copied().unwrap_or(since));
        for _ in newest..10 {
            let push = client.next().await;
            offsets.push(push["push"]["pub"]["offset"].as_u64().unwrap());
        }
        let all: Vec<u64> = (since + 1..=10).collect();
        assert_eq!(offsets, all);
        let answer = client.ask(r#"{"id":9,"ping":{}}"#).await;
        assert_eq!(answer["id"], 9, "nothing arrives twice: {answer}");
    }
}

#[tokio::test]
async fn a_publication_that_fits_into_no_reply_is_recovered_and_a_long_history_is_cut_short() {
    let gateway = Gateway::open("[client]\nreply_bytes_max = 1000").await;
    let mut client = Json::connect(&gateway).await;
    let reply = client.subscribe("news").await;
    let epoch = reply["subscribe"]["epoch"].as_str().unwrap().to_owned();
    drop(client);
    let payload = format!("\"{}\"", "x".repeat(2_000));
    for _ in 1..=3 {
        gateway.publish("news", &payload).await;
    }
    let mut client = Json::connect(&gateway).await;
    let recover =
        json!({"channel": "news", "recover": true, "epoch": epoch, "offset": 1}).to_string();
    let reply = client
        .ask(&format!(r#"{{"id":2,"subscribe":{recover}}}"#))
        .await;
    let subscribe = &reply["subscribe"];
    assert_eq!(
        (&subscribe["recovered"], &subscribe["offset"]),
        (&json!(true), &json!(1))
    );
    for offset in 2..=3 {
        assert_eq!(client.next().await["push"]["pub"]["offset"], offset);
    }
    let reply = client
        .ask(r#"{"id":3,"history":{"channel":"news","limit":-1}}"#)
        .await;
    let history = &reply["history"];
    assert_eq!(history["offset"], 3);
    let publications = history["publications"].as_array().unwrap();
    assert_eq!(publications.len(), 1, "one at least");
    assert_eq!(publications[0]["offset"], 1);
}

#[tokio::test]
async fn others_are_told_who_comes_and_goes() {
    let gateway = Gateway::open("").await;
    let mut watcher = Json::connect(&gateway).await;
    watcher
        .ask(r#"{"id":2,"subscribe":{"channel":"demo:x","join_leave":true}}"#)
        .await;
    let join = watcher.next().await;
    assert!(join["push"]["join"].is_object(), "its own: {join}");
    let mut other = Json::connect(&gateway).await;
    other.subscribe("demo:x").await;
    let join = watcher.next().await;
    let client = join["push"]["join"]["info"]["client"].clone();
    assert!(client.is_string(), "{join}");
    drop(other);
    let leave = watcher.next().await;
    assert_eq!(leave["push"]["leave"]["info"]["client"], client, "{leave}");
}

#[tokio::test]
async fn an_ended_subscription_gets_nothing_more() {
    let gateway = Gateway::open("").await;
    let mut client = Json::connect(&gateway).await;
    client.subscribe("a").await;
    client.subscribe("b").await;
    let reply = client
        .ask(r#"{"id":3,"unsubscribe":{"channel":"a"}}"#)
        .await;
    assert_eq!(reply, json!({"id": 3, "unsubscribe": {}}));
    gateway.publish("a", "1").await;
    gateway.publish("b", "2").await;
    assert_eq!(client.next().await["push"]["channel"], "b");
}

#[tokio::test]
async fn tokens_say_who_somebody_is_and_what_it_is_subscribed_to() {
    let gateway = Gateway::guarded(
        "[channel]\nallow_subscribe = true\npresence = true\nallow_presence = true",
    )
    .await;
    let claims = json!({"sub": "ann", "info": {"n": 1}, "channels": ["inbox"]});
    let mut client = Json::open(&gateway).await;
    let command = json!({"id": 1, "connect": {"token": token(&claims)}});
    let reply = client.ask(&command.to_string()).await;
    assert!(reply["connect"]["subs"]["inbox"].is_object(), "{reply}");
    gateway.publish("inbox", "1").await;
    let push = client.next().await;
    assert_eq!(push["push"]["pub"]["data"], 1, "{push}");
    let reply = client
        .ask(r#"{"id":2,"presence":{"channel":"inbox"}}"#)
        .await;
    let present = reply["presence"]["presence"].as_object().unwrap();
    let info = present.values().next().unwrap();
    assert_eq!(
        (&info["user"], &info["conn_info"]),
        (&json!("ann"), &json!({"n": 1}))
    );
}

#[tokio::test]
async fn a_token_for_a_channel_opens_that_channel_only() {
    let gateway = Gateway::guarded("").await;
    let user = token(&json!({"sub": "ann"}));
    let mut client = Json::connect_with(&gateway, &user).await;
    let mut subscribe = async |channel: &str, claims: serde_json::Value| {
        let token = token(&claims);
        let command = json!({"id": 2, "subscribe": {"channel": channel, "token": token}});
        client.ask(&command.to_string()).await
    };
    let good = json!({"sub": "ann", "channel": "secret"});
    assert!(subscribe("secret", good.clone()).await["subscribe"].is_object());
    for (channel, claims, code) in [
        ("other", good, 103),
        ("third", json!({"sub": "bob", "channel": "third"}), 103),
        (
            "fourth",
            json!({"sub": "ann", "channel": "fourth", "exp": 1}),
            109,
        ),
        ("fifth", json!({"sub": "ann"}), 103),
    ] {
        let reply = subscribe(channel, claims).await;
        assert_eq!(error(&reply).0, code, "{channel}: {reply}");
    }
    let reply = client
        .ask(r#"{"id":3,"subscribe":{"channel":"sixth"}}"#)
        .await;
    assert_eq!(error(&reply).0, 103);
}

#[tokio::test]
async fn a_token_that_is_renewed_keeps_the_connection_and_one_that_is_not_ends_it() {
    let gateway = Gateway::guarded("[client]\nrefresh_grace_s = 1").await;
    let soon = |seconds| token(&json!({"sub": "ann", "exp": seconds_from_now(seconds)}));
    let mut lazy = Json::connect_with(&gateway, &soon(2)).await;
    let mut eager = Json::open(&gateway).await;
    let command = json!({"id": 1, "connect": {"token": soon(2)}});
    let reply = eager.ask(&command.to_string()).await;
    assert_eq!(reply["connect"]["expires"], true);
    assert!(
        (1..=2).contains(&reply["connect"]["ttl"].as_u64().unwrap()),
        "{reply}"
    );
    let command = json!({"id": 2, "refresh": {"token": soon(100)}});
    let reply = eager.ask(&command.to_string()).await;
    assert!(
        (99..=100).contains(&reply["refresh"]["ttl"].as_u64().unwrap()),
        "{reply}"
    );
    lazy.closed(3005).await;
    let alive = eager.ask(r#"{"id":3,"ping":{}}"#).await;
    assert_eq!(alive["id"], 3);
    let command = json!({"id": 4, "refresh": {"token": soon(-100)}});
    assert_eq!(error(&eager.ask(&command.to_string()).await).0, 109);
    let bob = token(&json!({"sub": "bob"}));
    let command = json!({"id": 5, "refresh": {"token": bob}});
    eager.send(&command.to_string()).await;
    eager.closed(3500).await;
}

#[tokio::test]
async fn a_subscription_whose_token_is_not_renewed_ends_alone() {
    let gateway = Gateway::guarded("[client]\nrefresh_grace_s = 1").await;
    let mut client = Json::connect_with(&gateway, &token(&json!({"sub": "ann"}))).await;
    let claims = |seconds| {
        token(&json!({"sub": "ann", "channel": "secret", "exp": seconds_from_now(seconds)}))
    };
    let command = json!({"id": 2, "subscribe": {"channel": "secret", "token": claims(1)}});
    let reply = client.ask(&command.to_string()).await;
    assert_eq!(reply["subscribe"]["expires"], true, "{reply}");
    let command = json!({"id": 3, "sub_refresh": {"channel": "secret", "token": claims(2)}});
    let reply = client.ask(&command.to_string()).await;
    assert_eq!(reply["sub_refresh"]["expires"], true, "{reply}");
    let push = client.next().await;
    assert_eq!(push["push"]["unsubscribe"]["code"], 2501, "{push}");
    assert_eq!(client.ask(r#"{"id":4,"ping":{}}"#).await["id"], 4);
}

#[tokio::test]
async fn a_client_that_answers_no_ping_is_given_up() {
    let gateway = Gateway::open("[client]\nping_interval_s = 1\npong_timeout_s = 1").await;
    let mut client = Json::connect(&gateway).await;
    let mut silent = Json::connect(&gateway).await;
    let answers = tokio::time::timeout(Duration::from_secs(4), client.next());
    let (answered, _) = tokio::join!(answers, closed(&mut silent.ws, 3012));
    answered.expect_err("it answers pings, and nothing else arrives");
    assert_eq!(gateway.info().clients, 1);
}
