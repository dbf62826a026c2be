//! The contenders, the machine and the method.

use maud::{Markup, html};

use crate::host::list;
use crate::record::{Host, Record};
use crate::report::number::bytes;
use crate::report::prose::{self, BIAS, METHOD};
use crate::report::words::Names;

/// Lists all contenders, the absent ones with the reason.
pub(super) fn contenders(record: &Record, names: &Names<'_>) -> Markup {
    let (absent, present): (Vec<_>, Vec<_>) = record
        .run
        .contenders
        .iter()
        .partition(|note| note.absent.is_some());
    html! {
        section #contenders {
            h2 { "Contenders" }
            dl.contenders {
                @for note in present {
                    div class=(names.class(&note.name)) {
                        dt {
                            (note.title) " " small { (note.version) " · " (note.language) }
                        }
                        dd { (note.notes) }
                    }
                }
            }
            @if !absent.is_empty() {
                h3 { "Could not take part" }
                ul {
                    @for note in absent {
                        li {
                            strong { (note.title) } " (" (note.language) "): "
                            (note.absent.as_deref().unwrap_or_default())
                        }
                    }
                }
            }
        }
    }
}

/// Renders the method and its bias, as they are in the checkout from which linerate was built.
pub(super) fn method() -> Markup {
    html! {
        section.prose #method { (prose::render(METHOD)) }
        section.prose #bias { (prose::render(BIAS)) }
    }
}

/// Describes the machine.
pub(super) fn machine(host: &Host) -> Markup {
    let facts = [
        ("Processor", host.cpu.clone()),
        (
            "Cores",
            format!(
                "{}: servers on {}, load on {}",
                host.cores,
                list(&host.server_cores),
                list(&host.load_cores)
            ),
        ),
        ("Memory", bytes(host.memory_bytes as f64)),
        ("Kernel", host.kernel.clone()),
        ("Hypervisor", or(&host.hypervisor, "none detected")),
        ("Clock governor", or(&host.governor, "not available")),
    ];
    html! {
        section #machine {
            h2 { "Machine" }
            dl.facts {
                @for (term, fact) in facts { div { dt { (term) } dd { (fact) } } }
            }
            h3 { "Versions" }
            ul.columns { @for tool in &host.tools { li { (tool) } } }
            h3 { "Mitigations of processor flaws" }
            ul.columns { @for mitigation in &host.mitigations { li { (mitigation) } } }
        }
    }
}

/// Describes the machine in one line.
pub(super) fn machine_line(host: &Host) -> String {
    let hypervisor = match host.hypervisor.as_str() {
        "" => String::new(),
        name => format!(", virtual machine ({name})"),
    };
    format!(
        "{}, {} cores{hypervisor}, {}, {}",
        host.cpu,
        host.cores,
        bytes(host.memory_bytes as f64),
        host.kernel
    )
}

fn or(text: &str, fallback: &str) -> String {
    if text.is_empty() { fallback } else { text }.into()
}
