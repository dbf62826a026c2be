//! The configuration in force.

use axum::{Json, extract::State};

use super::{AdminState, Administrator, view};
use crate::config::Source;

pub(super) async fn list(
    _: Administrator,
    State(state): State<AdminState>,
) -> Json<view::Settings> {
    let settings = state.admin.shared.settings_full();
    let config = &settings.config;
    let of_config = config.settings().iter();
    let settings = of_config.map(|setting| {
        let resolved = config.resolved(&setting.key).map(|value| value.to_string());
        view::Setting {
            is_changed: setting.source != Source::Default
                && setting.default.as_ref() != Some(&setting.value),
            resolved: resolved.filter(|value| *value != setting.value),
            key: setting.key.clone(),
            value: setting.value.clone(),
            default: setting.default.clone(),
            source: setting.source.to_string(),
        }
    });
    Json(view::Settings {
        settings: settings.collect(),
    })
}
