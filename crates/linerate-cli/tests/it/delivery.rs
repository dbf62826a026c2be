//! Delivery under faults: each subscriber receives every publication exactly once and in order, or
//! is told what it missed. The tests use real brokers, nodes, connections and official SDKs;
//! `make chaos` runs them with longer faults.

use std::time::Duration;

use tokio::sync::Mutex;

use fault::{Fault, Row};
use servers::Kind;
use stage::{Judged, Outcome, Stage};

mod backend;
mod certificates;
mod clock;
mod database;
mod event_stream;
mod fault;
mod ledger;
mod nats;
mod node;
mod proxy;
mod publisher;
mod record;
mod sdk;
mod servers;
mod stage;
mod subscriber;
mod webhook;

/// How long a node may report that it is ready although the broker is unavailable or cannot store
/// anything.
const RED_MAX: Duration = Duration::from_secs(5);

/// Minimum number of publications that each subscriber must have received.
const RECEIVED_MIN: u64 = 30;

/// Held by rows with large messages. Two such rows at once would slow down readers that must not be
/// slow.
static LOUD: Mutex<()> = Mutex::const_new(());

/// Inflicts a fault, repairs it, and checks the outcome.
async fn check(fault: Fault, kind: Kind) {
    let row = fault.row();
    let _alone = match row.padding > 1 << 10 {
        true => Some(LOUD.lock().await),
        false => None,
    };
    let outage = row.outage(record::is_taken());
    let Some(mut stage) = Stage::set(fault, kind).await else {
        return;
    };
    let broken = stage.inflict(outage).await;
    let outcome = stage.judge(broken).await;
    record::append(&row, kind, outage, &outcome);
    let mistakes = mistakes(&row, kind, &outcome);
    if !mistakes.is_empty() {
        for judged in &outcome.judged {
            println!("{}", record::line(&row, kind, outage, &outcome, judged));
        }
        println!("{}", outcome.told);
        panic!("{} with {kind:?}:\n{}", row.name, mistakes.join("\n"));
    }
}

/// Returns everything that is wrong with the outcome.
fn mistakes(row: &Row, kind: Kind, outcome: &Outcome) -> Vec<String> {
    let mut mistakes = outcome.mistakes.clone();
    for judged in &outcome.judged {
        if let Some(mistake) = mistake(row, kind, judged) {
            let who = judged.protocol.name();
            mistakes.push(format!("{who} in {}: {mistake}", judged.channel));
        }
    }
    if row.is_red() && outcome.red.is_none_or(|red| red > RED_MAX) {
        mistakes.push(format!("/ready did not fail in time: {:?}", outcome.red));
    }
    mistakes
}

fn mistake(row: &Row, kind: Kind, judged: &Judged) -> Option<String> {
    let verdict = &judged.verdict;
    if verdict.lost + verdict.duplicated + verdict.reordered > 0 {
        return Some(format!("{verdict:?}"));
    }
    if verdict.received < RECEIVED_MIN {
        return Some(format!("too few publications received: {verdict:?}"));
    }
    let is_whole = judged.is_bystander || row.is_survived(kind, &judged.channel);
    // Raw subscribers recover nothing, and bystanders have nothing to recover.
    let recovers = judged.is_bystander || judged.protocol != subscriber::Protocol::Raw;
    let is_missing = verdict.announced > 0 && is_whole && recovers;
    is_missing.then(|| format!("publications missing although they were kept: {verdict:?}"))
}

macro_rules! faults {
    ($($(#[$long:meta])? $fault:ident: $with_redis:ident, $with_nats:ident;)*) => {
        $(
            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            $(#[$long])?
            async fn $with_redis() {
                check(Fault::$fault, Kind::Redis).await;
            }

            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            $(#[$long])?
            async fn $with_nats() {
                check(Fault::$fault, Kind::Nats).await;
            }
        )*
    };
}

faults! {
    BrokerFull: a_full_redis_is_told, a_full_nats_is_told;
    BrokerKilled: a_killed_redis_begins_anew_and_says_so, a_killed_nats_loses_nothing_that_is_kept;
    BrokerStopped: a_stopped_redis_loses_nothing_that_is_kept, a_stopped_nats_loses_nothing_that_is_kept;
    ClientsCut: clients_that_are_cut_off_recover_with_redis, clients_that_are_cut_off_recover_with_nats;
    LinkCut: a_cut_way_to_redis_loses_nothing_that_is_kept, a_cut_way_to_nats_loses_nothing_that_is_kept;
    LinkSilent: g01_a_silent_way_to_redis_is_found_out_and_loses_nothing_that_is_kept,
        g01_a_silent_way_to_nats_is_found_out_and_loses_nothing_that_is_kept;
    NodeKilled: g06_a_killed_node_on_redis_loses_nothing_that_is_kept,
        g06_a_killed_node_on_nats_loses_nothing_that_is_kept;
    NodeRestarted: g06_a_restarted_node_on_redis_loses_nothing_that_is_kept,
        g06_a_restarted_node_on_nats_loses_nothing_that_is_kept;
    NodeStopped: a_stopped_node_on_redis_reads_before_it_judges, a_stopped_node_on_nats_reads_before_it_judges;
    #[ignore = "only in make slow-test and make chaos, because other tests slow its readers down"]
    ReadersStopped: readers_that_stop_are_told_and_others_do_not_suffer_with_redis,
        readers_that_stop_are_told_and_others_do_not_suffer_with_nats;
    #[ignore = "only in make chaos"]
    BackendDeaf: clients_of_a_deaf_backend_return_and_recover_with_redis,
        clients_of_a_deaf_backend_return_and_recover_with_nats;
    #[ignore = "only in make chaos"]
    BackendSlow: clients_of_a_slow_backend_return_and_recover_with_redis,
        clients_of_a_slow_backend_return_and_recover_with_nats;
    #[ignore = "only in make chaos"]
    BackendWrong: clients_of_a_wrong_backend_return_and_recover_with_redis,
        clients_of_a_wrong_backend_return_and_recover_with_nats;
    #[ignore = "only in make chaos"]
    BrokerDiskFull: a_redis_with_a_full_disk_is_told, a_nats_with_a_full_disk_is_told;
    #[ignore = "only in make chaos"]
    BrokerEvicting: what_redis_evicts_is_told, what_nats_purges_is_told;
    #[ignore = "only in make chaos"]
    BrokerReplaced: a_replica_that_takes_over_is_told, an_empty_nats_that_takes_over_is_told;
    #[ignore = "only in make chaos"]
    BrokerRestarted: a_restarted_redis_begins_anew_and_says_so, a_restarted_nats_loses_nothing_that_is_kept;
    #[ignore = "only in make chaos"]
    CertificateRotated: a_new_certificate_interrupts_nobody_with_redis, a_new_certificate_interrupts_nobody_with_nats;
    #[ignore = "only in make chaos"]
    ClientsSilent: clients_that_hear_nothing_recover_with_redis, clients_that_hear_nothing_recover_with_nats;
    #[ignore = "only in make chaos"]
    ClockStepped: clocks_that_jump_are_told_with_redis, clocks_that_jump_change_nothing_with_nats;
    #[ignore = "only in make chaos"]
    DatabaseCrashed: changes_of_a_crashed_database_are_published_once_with_redis,
        changes_of_a_crashed_database_are_published_once_with_nats;
    #[ignore = "only in make chaos"]
    DatabaseReplaced: what_a_replica_does_not_know_is_told_with_redis, what_a_replica_does_not_know_is_told_with_nats;
    #[ignore = "only in make chaos"]
    DatabaseSlotDropped: what_is_lost_with_a_slot_is_told_with_redis, what_is_lost_with_a_slot_is_told_with_nats;
    #[ignore = "only in make chaos"]
    KafkaCrashed: records_of_a_crashed_kafka_are_published_once_with_redis,
        records_of_a_crashed_kafka_are_published_once_with_nats;
    #[ignore = "only in make chaos"]
    KafkaRebalanced: records_of_partitions_that_move_are_published_once_with_redis,
        records_of_partitions_that_move_are_published_once_with_nats;
    #[ignore = "only in make chaos"]
    KafkaWrittenCrashed: what_is_acknowledged_is_in_a_crashed_kafka_with_redis,
        what_is_acknowledged_is_in_a_crashed_kafka_with_nats;
    #[ignore = "only in make chaos"]
    LinkFlapping: a_flapping_way_to_redis_loses_nothing_that_is_kept,
        a_flapping_way_to_nats_loses_nothing_that_is_kept;
    #[ignore = "only in make chaos"]
    LinkHalfClosed: a_half_closed_way_to_redis_loses_nothing_that_is_kept,
        a_half_closed_way_to_nats_loses_nothing_that_is_kept;
    #[ignore = "only in make chaos"]
    LinkSlow: a_slow_way_to_redis_loses_nothing_that_is_kept, a_slow_way_to_nats_loses_nothing_that_is_kept;
    #[ignore = "only in make chaos"]
    NodeDrained: clients_of_a_drained_node_go_on_at_another_with_redis,
        clients_of_a_drained_node_go_on_at_another_with_nats;
    #[ignore = "only in make chaos"]
    NodeReloaded: a_reload_interrupts_nobody_with_redis, a_reload_interrupts_nobody_with_nats;
    #[ignore = "only in make chaos"]
    ReadersSlow: slow_readers_are_told_and_others_do_not_suffer_with_redis,
        slow_readers_are_told_and_others_do_not_suffer_with_nats;
    #[ignore = "only in make chaos"]
    WebhookDown: a_webhook_that_was_down_is_told_everything_with_redis,
        a_webhook_that_was_down_is_told_everything_with_nats;
}
