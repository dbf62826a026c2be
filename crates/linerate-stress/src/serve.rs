//! Rows about `linerate serve`, with its default limits unless a row changes them.

mod churn;
mod files;
mod filters;
mod flood;
mod front;
mod hoard;
mod process;
mod publisher;
mod reload;
mod rolling;
mod slow;
mod stalled;
mod uploads;

use crate::Row;

pub(crate) fn rows() -> Vec<Row> {
    let mut rows = flood::rows();
    rows.extend(slow::rows());
    rows.extend(front::rows());
    rows.extend(filters::rows());
    rows.extend(files::rows());
    rows.extend(uploads::rows());
    rows.extend([
        stalled::row(),
        hoard::row(),
        reload::row(),
        churn::row(),
        rolling::row(),
    ]);
    rows
}
