//! Tests of the claims of tokens.

use jsonwebtoken::Algorithm;
use linerate_hub::ChannelName;
use serde_json::json;

use super::{NOW, authenticator, connect, subscribe, token};

#[tokio::test]
async fn a_connection_has_a_user_information_and_subscriptions() {
    let claims = json!({
        "sub": "ann", "exp": NOW + 60, "info": {"name": "Ann"}, "meta": {"role": "editor"},
        "channels": ["news", "private"],
        "subs": {"private": {"info": {"x": 1}, "override": {"presence": {"value": true}}}},
    });
    let taken = connect(&authenticator(), &token(Algorithm::HS256, &claims))
        .await
        .unwrap();
    assert_eq!(taken.user, "ann");
    assert_eq!(taken.info.unwrap(), r#"{"name":"Ann"}"#);
    assert_eq!(taken.meta.unwrap(), r#"{"role":"editor"}"#);
    assert_eq!(taken.expires_at, Some(NOW + 60));
    let [(news, plain), (private, special)] = &taken.subscriptions[..] else {
        panic!("{:?}", taken.subscriptions);
    };
    assert_eq!(*news, ChannelName::new("news").unwrap());
    assert_eq!(plain.info, None);
    assert_eq!(private.as_str(), "private");
    assert_eq!(special.info.as_deref(), Some(&br#"{"x":1}"#[..]));
    assert_eq!(special.overrides.presence, Some(true));
    assert_eq!(special.overrides.join_leave, None);
}

#[tokio::test]
async fn a_token_with_no_claims_is_that_of_an_anonymous_user_forever() {
    let taken = connect(&authenticator(), &token(Algorithm::HS256, &json!({})))
        .await
        .unwrap();
    assert_eq!(taken, super::ConnectionClaims::default());
}

#[tokio::test]
async fn expire_at_has_the_last_word_on_the_end() {
    for (claims, end) in [
        (json!({"exp": NOW + 60}), Some(NOW + 60)),
        (
            json!({"exp": NOW + 60, "expire_at": NOW + 600}),
            Some(NOW + 600),
        ),
        (json!({"exp": NOW + 60, "expire_at": 0}), None),
        (json!({"expire_at": NOW + 5}), Some(NOW + 5)),
    ] {
        let taken = connect(&authenticator(), &token(Algorithm::HS256, &claims)).await;
        assert_eq!(taken.unwrap().expires_at, end, "{claims}");
    }
}

#[tokio::test]
async fn a_subscription_has_information_and_overrides() {
    let claims = json!({
        "sub": "ann", "channel": "news", "b64info": "eyJhIjoxfQ==", "data": [1], "expire_at": NOW + 9,
        "override": {"join_leave": {"value": false}, "force_recovery": {"value": true}},
    });
    let taken = subscribe(&claims).await.unwrap();
    assert_eq!(taken.info.unwrap(), r#"{"a":1}"#);
    assert_eq!(taken.data.unwrap(), "[1]");
    assert_eq!(taken.expires_at, Some(NOW + 9));
    assert_eq!(taken.overrides.join_leave, Some(false));
    assert_eq!(taken.overrides.recover, Some(true));
    assert_eq!(taken.overrides.presence, None);
}
