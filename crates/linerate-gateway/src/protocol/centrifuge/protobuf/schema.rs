//! The supported messages of the protocol, with its field numbers.

use std::collections::BTreeMap;

use bytes::Bytes;

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct Error {
    #[prost(uint32, tag = "1")]
    pub(super) code: u32,
    #[prost(string, tag = "2")]
    pub(super) message: String,
    #[prost(bool, tag = "3")]
    pub(super) temporary: bool,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct EmulationRequest {
    #[prost(string, tag = "1")]
    pub(super) node: String,
    #[prost(string, tag = "2")]
    pub(super) session: String,
    #[prost(bytes = "bytes", tag = "3")]
    pub(super) data: Bytes,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct Command {
    #[prost(uint32, tag = "1")]
    pub(super) id: u32,
    #[prost(message, optional, tag = "4")]
    pub(super) connect: Option<ConnectRequest>,
    #[prost(message, optional, tag = "5")]
    pub(super) subscribe: Option<SubscribeRequest>,
    #[prost(message, optional, tag = "6")]
    pub(super) unsubscribe: Option<ChannelRequest>,
    #[prost(message, optional, tag = "7")]
    pub(super) publish: Option<PublishRequest>,
    #[prost(message, optional, tag = "8")]
    pub(super) presence: Option<ChannelRequest>,
    #[prost(message, optional, tag = "9")]
    pub(super) presence_stats: Option<ChannelRequest>,
    #[prost(message, optional, tag = "10")]
    pub(super) history: Option<HistoryRequest>,
    #[prost(message, optional, tag = "11")]
    pub(super) ping: Option<Empty>,
    #[prost(message, optional, tag = "12")]
    pub(super) send: Option<SendRequest>,
    #[prost(message, optional, tag = "13")]
    pub(super) rpc: Option<RpcRequest>,
    #[prost(message, optional, tag = "14")]
    pub(super) refresh: Option<RefreshRequest>,
    #[prost(message, optional, tag = "15")]
    pub(super) sub_refresh: Option<SubRefreshRequest>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct Reply {
    #[prost(uint32, tag = "1")]
    pub(super) id: u32,
    #[prost(message, optional, tag = "2")]
    pub(super) error: Option<Error>,
    #[prost(message, optional, tag = "4")]
    pub(super) push: Option<Push>,
    #[prost(message, optional, tag = "5")]
    pub(super) connect: Option<ConnectResult>,
    #[prost(message, optional, tag = "6")]
    pub(super) subscribe: Option<SubscribeResult>,
    #[prost(message, optional, tag = "7")]
    pub(super) unsubscribe: Option<Empty>,
    #[prost(message, optional, tag = "8")]
    pub(super) publish: Option<Empty>,
    #[prost(message, optional, tag = "9")]
    pub(super) presence: Option<PresenceResult>,
    #[prost(message, optional, tag = "10")]
    pub(super) presence_stats: Option<PresenceStatsResult>,
    #[prost(message, optional, tag = "11")]
    pub(super) history: Option<HistoryResult>,
    #[prost(message, optional, tag = "12")]
    pub(super) ping: Option<Empty>,
    #[prost(message, optional, tag = "13")]
    pub(super) rpc: Option<RpcResult>,
    #[prost(message, optional, tag = "14")]
    pub(super) refresh: Option<RefreshResult>,
    #[prost(message, optional, tag = "15")]
    pub(super) sub_refresh: Option<SubRefreshResult>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct RpcResult {
    #[prost(bytes = "bytes", tag = "1")]
    pub(super) data: Bytes,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct Push {
    #[prost(string, tag = "2")]
    pub(super) channel: String,
    #[prost(message, optional, tag = "4")]
    pub(super) publication: Option<Publication>,
    #[prost(message, optional, tag = "5")]
    pub(super) join: Option<Presence>,
    #[prost(message, optional, tag = "6")]
    pub(super) leave: Option<Presence>,
    #[prost(message, optional, tag = "7")]
    pub(super) unsubscribe: Option<Unsubscribe>,
    #[prost(message, optional, tag = "9")]
    pub(super) subscribe: Option<Subscribe>,
    #[prost(message, optional, tag = "11")]
    pub(super) disconnect: Option<Disconnect>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct ClientInfo {
    #[prost(string, tag = "1")]
    pub(super) user: String,
    #[prost(string, tag = "2")]
    pub(super) client: String,
    #[prost(bytes = "bytes", tag = "3")]
    pub(super) conn_info: Bytes,
    #[prost(bytes = "bytes", tag = "4")]
    pub(super) chan_info: Bytes,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct Publication {
    #[prost(bytes = "bytes", tag = "4")]
    pub(super) data: Bytes,
    #[prost(message, optional, tag = "5")]
    pub(super) info: Option<ClientInfo>,
    #[prost(uint64, tag = "6")]
    pub(super) offset: u64,
    #[prost(btree_map = "string, string", tag = "7")]
    pub(super) tags: BTreeMap<String, String>,
    #[prost(bool, tag = "8")]
    pub(super) delta: bool,
    #[prost(string, tag = "10")]
    pub(super) channel: String,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct Presence {
    #[prost(message, optional, tag = "1")]
    pub(super) info: Option<ClientInfo>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct Unsubscribe {
    #[prost(uint32, tag = "2")]
    pub(super) code: u32,
    #[prost(string, tag = "3")]
    pub(super) reason: String,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct Subscribe {
    #[prost(bool, tag = "1")]
    pub(super) recoverable: bool,
    #[prost(string, tag = "4")]
    pub(super) epoch: String,
    #[prost(uint64, tag = "5")]
    pub(super) offset: u64,
    #[prost(bool, tag = "6")]
    pub(super) positioned: bool,
    #[prost(bytes = "bytes", tag = "7")]
    pub(super) data: Bytes,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct Disconnect {
    #[prost(uint32, tag = "1")]
    pub(super) code: u32,
    #[prost(string, tag = "2")]
    pub(super) reason: String,
    #[prost(bool, tag = "3")]
    pub(super) reconnect: bool,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct ConnectRequest {
    #[prost(string, tag = "1")]
    pub(super) token: String,
    #[prost(bytes = "bytes", tag = "2")]
    pub(super) data: Bytes,
    #[prost(btree_map = "string, message", tag = "3")]
    pub(super) subs: BTreeMap<String, SubscribeRequest>,
    #[prost(string, tag = "4")]
    pub(super) name: String,
    #[prost(string, tag = "5")]
    pub(super) version: String,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct ConnectResult {
    #[prost(string, tag = "1")]
    pub(super) client: String,
    #[prost(string, tag = "2")]
    pub(super) version: String,
    #[prost(bool, tag = "3")]
    pub(super) expires: bool,
    #[prost(uint32, tag = "4")]
    pub(super) ttl: u32,
    #[prost(bytes = "bytes", tag = "5")]
    pub(super) data: Bytes,
    #[prost(btree_map = "string, message", tag = "6")]
    pub(super) subs: BTreeMap<String, SubscribeResult>,
    #[prost(uint32, tag = "7")]
    pub(super) ping: u32,
    #[prost(bool, tag = "8")]
    pub(super) pong: bool,
    #[prost(string, tag = "9")]
    pub(super) session: String,
    #[prost(string, tag = "10")]
    pub(super) node: String,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct ChannelRequest {
    #[prost(string, tag = "1")]
    pub(super) channel: String,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct SubscribeRequest {
    #[prost(string, tag = "1")]
    pub(super) channel: String,
    #[prost(string, tag = "2")]
    pub(super) token: String,
    #[prost(bool, tag = "3")]
    pub(super) recover: bool,
    #[prost(string, tag = "6")]
    pub(super) epoch: String,
    #[prost(uint64, tag = "7")]
    pub(super) offset: u64,
    #[prost(bytes = "bytes", tag = "8")]
    pub(super) data: Bytes,
    #[prost(bool, tag = "9")]
    pub(super) positioned: bool,
    #[prost(bool, tag = "10")]
    pub(super) recoverable: bool,
    #[prost(bool, tag = "11")]
    pub(super) join_leave: bool,
    #[prost(string, tag = "12")]
    pub(super) delta: String,
    #[prost(message, optional, tag = "13")]
    pub(super) tags_filter: Option<FilterNode>,
    #[prost(int64, tag = "14")]
    pub(super) flag: i64,
    #[prost(int32, tag = "15")]
    pub(super) kind: i32,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct SubscribeResult {
    #[prost(bool, tag = "1")]
    pub(super) expires: bool,
    #[prost(uint32, tag = "2")]
    pub(super) ttl: u32,
    #[prost(bool, tag = "3")]
    pub(super) recoverable: bool,
    #[prost(string, tag = "6")]
    pub(super) epoch: String,
    #[prost(message, repeated, tag = "7")]
    pub(super) publications: Vec<Publication>,
    #[prost(bool, tag = "8")]
    pub(super) recovered: bool,
    #[prost(uint64, tag = "9")]
    pub(super) offset: u64,
    #[prost(bool, tag = "10")]
    pub(super) positioned: bool,
    #[prost(bytes = "bytes", tag = "11")]
    pub(super) data: Bytes,
    #[prost(bool, tag = "12")]
    pub(super) was_recovering: bool,
    #[prost(bool, tag = "13")]
    pub(super) delta: bool,
    #[prost(int64, tag = "14")]
    pub(super) id: i64,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct FilterNode {
    #[prost(string, tag = "1")]
    pub(super) op: String,
    #[prost(string, tag = "2")]
    pub(super) key: String,
    #[prost(string, tag = "3")]
    pub(super) cmp: String,
    #[prost(string, tag = "4")]
    pub(super) val: String,
    #[prost(string, repeated, tag = "5")]
    pub(super) vals: Vec<String>,
    #[prost(message, repeated, tag = "6")]
    pub(super) nodes: Vec<FilterNode>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct SubRefreshRequest {
    #[prost(string, tag = "1")]
    pub(super) channel: String,
    #[prost(string, tag = "2")]
    pub(super) token: String,
    #[prost(int32, tag = "3")]
    pub(super) kind: i32,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct SubRefreshResult {
    #[prost(bool, tag = "1")]
    pub(super) expires: bool,
    #[prost(uint32, tag = "2")]
    pub(super) ttl: u32,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct PublishRequest {
    #[prost(string, tag = "1")]
    pub(super) channel: String,
    #[prost(bytes = "bytes", tag = "2")]
    pub(super) data: Bytes,
    #[prost(int32, tag = "3")]
    pub(super) kind: i32,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct PresenceResult {
    #[prost(btree_map = "string, message", tag = "1")]
    pub(super) presence: BTreeMap<String, ClientInfo>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct PresenceStatsResult {
    #[prost(uint32, tag = "1")]
    pub(super) num_clients: u32,
    #[prost(uint32, tag = "2")]
    pub(super) num_users: u32,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct StreamPosition {
    #[prost(uint64, tag = "1")]
    pub(super) offset: u64,
    #[prost(string, tag = "2")]
    pub(super) epoch: String,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct HistoryRequest {
    #[prost(string, tag = "1")]
    pub(super) channel: String,
    #[prost(int32, tag = "7")]
    pub(super) limit: i32,
    #[prost(message, optional, tag = "8")]
    pub(super) since: Option<StreamPosition>,
    #[prost(bool, tag = "9")]
    pub(super) reverse: bool,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct HistoryResult {
    #[prost(message, repeated, tag = "1")]
    pub(super) publications: Vec<Publication>,
    #[prost(string, tag = "2")]
    pub(super) epoch: String,
    #[prost(uint64, tag = "3")]
    pub(super) offset: u64,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct RefreshRequest {
    #[prost(string, tag = "1")]
    pub(super) token: String,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct RefreshResult {
    #[prost(string, tag = "1")]
    pub(super) client: String,
    #[prost(string, tag = "2")]
    pub(super) version: String,
    #[prost(bool, tag = "3")]
    pub(super) expires: bool,
    #[prost(uint32, tag = "4")]
    pub(super) ttl: u32,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct RpcRequest {
    #[prost(bytes = "bytes", tag = "1")]
    pub(super) data: Bytes,
    #[prost(string, tag = "2")]
    pub(super) method: String,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct SendRequest {
    #[prost(bytes = "bytes", tag = "1")]
    pub(super) data: Bytes,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct Empty {}
