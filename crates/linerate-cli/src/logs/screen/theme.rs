//! Colours and other styles. Without colours, bold, dim and reversed text remain.

use ratatui::style::{Color, Modifier, Style};

/// How text is styled. Colours are those of the terminal's palette, which suits its background.
#[derive(Clone, Copy, Debug)]
pub(super) struct Theme {
    pub(super) has_colors: bool,
}

impl Theme {
    fn colored(self, color: Color) -> Style {
        match self.has_colors {
            true => Style::new().fg(color),
            false => Style::new(),
        }
    }

    /// The name of the program, and what has the focus.
    pub(super) fn accent(self) -> Style {
        self.colored(Color::Cyan)
    }

    /// Bars and columns of requests.
    pub(super) fn bar(self) -> Style {
        self.colored(Color::Blue)
    }

    pub(super) fn client_error(self) -> Style {
        self.colored(Color::Yellow)
    }

    pub(super) fn server_error(self) -> Style {
        self.colored(Color::Red)
    }

    /// A message that something has failed.
    pub(super) fn failure(self) -> Style {
        self.colored(Color::Red).add_modifier(Modifier::BOLD)
    }

    /// Something that goes well.
    pub(super) fn success(self) -> Style {
        self.colored(Color::Green)
    }

    /// Labels and what is less important.
    pub(super) fn dim(self) -> Style {
        Style::new().add_modifier(Modifier::DIM)
    }

    pub(super) fn bold(self) -> Style {
        Style::new().add_modifier(Modifier::BOLD)
    }

    /// The selected row, and filters that are applied.
    pub(super) fn selected(self) -> Style {
        self.accent().add_modifier(Modifier::REVERSED)
    }

    /// Text that was searched for.
    pub(super) fn found(self) -> Style {
        self.client_error()
            .add_modifier(Modifier::BOLD | Modifier::UNDERLINED)
    }
}
