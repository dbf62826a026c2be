// The JSON of /admin/api/, as the server documents it in `linerate_gateway::admin::view`.

export interface Node {
  id: string;
  name: string;
  version: string;
  uptime_s: number;
  clients: number;
  users: number;
  subscriptions: number;
  channels: number;
}

export type LinkState = "up" | "deaf";

export interface Overview {
  node: Node;
  is_draining: boolean;
  nodes: number;
  link: LinkState;
  publications_per_s: number;
  publication_bytes_per_s: number;
  deliveries_per_s: number;
  delivery_bytes_per_s: number;
  waiting: number;
  dropped: number;
  conflated: number;
}

export interface SeriesView {
  step_s: number;
  at_ms: number[];
  publications_per_s: number[];
  publication_bytes_per_s: number[];
  deliveries_per_s: number[];
  delivery_bytes_per_s: number[];
  delay_p99_ms: (number | null)[];
  dropped: number[];
  gaps: number[];
  deaf_s: number[];
  clients: number[];
  memory_bytes: number[];
  resident_bytes: number[];
}

export interface Setting {
  key: string;
  value: string;
  resolved: string | null;
  default: string | null;
  is_changed: boolean;
  source: string;
}

export interface Settings {
  settings: Setting[];
}

export interface Nodes {
  nodes: Node[];
}

export interface Connection {
  client: string;
  user: string;
  protocol: string;
  transport: string;
  peer: string | null;
  agent: string;
  connected_at_ms: number;
  lag_ms: number;
  pending_bytes: number;
  channels: string[];
  subscriptions: number;
  worker: number;
}

export interface Connections {
  total: number;
  connections: Connection[];
}

export interface Channel {
  channel: string;
  subscribers: number;
  publications: number;
  bytes: number;
  publications_per_s: number;
  bytes_per_s: number;
}

export interface Channels {
  total: number;
  channels: Channel[];
}

export type Change = { at_ms: number } & (
  | { change: "up" }
  | { change: "deaf" }
  | { change: "gap"; reason: string; lasted_ms: number; channels: number | null }
);

export interface BrokerLink {
  broker: string;
  link: LinkState;
  round_trip_ms: number | null;
  gaps: number;
  gap_time_ms: number;
  /** Newest first. */
  timeline: Change[];
}

export interface Done {
  clients: number;
}

export interface TailPublication {
  at_ms: number;
  channel: string;
  offset: number;
  bytes: number;
  data: string;
  is_cut: boolean;
}
