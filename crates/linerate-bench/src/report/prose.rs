//! The texts about method and bias, converted from Markdown to HTML.

use maud::{Markup, PreEscaped};
use pulldown_cmark::{CowStr, Event, HeadingLevel, Options, Parser, Tag, TagEnd};

/// What is measured and how.
pub(super) const METHOD: &str = include_str!("../../../../docs/benchmark/method.md");

/// What the method favours.
pub(super) const BIAS: &str = include_str!("../../../../docs/benchmark/bias.md");

/// Renders Markdown.
///
/// Headings are lowered by one level, because the page has its own title. Links between the two
/// texts lead to the section of the other one. Links to files that do not come with the page become
/// plain text. HTML is shown as text.
pub(super) fn render(markdown: &str) -> Markup {
    let mut is_text_only = Vec::new();
    let parser = Parser::new_ext(markdown, Options::ENABLE_TABLES);
    let events = parser.filter_map(|mut event| {
        match &mut event {
            Event::Start(Tag::Heading { level, .. }) | Event::End(TagEnd::Heading(level)) => {
                *level = lower(*level);
            }
            Event::Start(Tag::Link { dest_url, .. }) => {
                let target = target(dest_url.clone());
                is_text_only.push(target.is_none());
                *dest_url = target?;
            }
            Event::End(TagEnd::Link) if is_text_only.pop() != Some(false) => return None,
            _ => {}
        }
        Some(match event {
            Event::Html(text) | Event::InlineHtml(text) => Event::Text(text),
            event => event,
        })
    });
    let mut page = String::new();
    pulldown_cmark::html::push_html(&mut page, events);
    PreEscaped(page)
}

fn lower(level: HeadingLevel) -> HeadingLevel {
    match level {
        HeadingLevel::H1 => HeadingLevel::H2,
        HeadingLevel::H2 => HeadingLevel::H3,
        HeadingLevel::H3 => HeadingLevel::H4,
        HeadingLevel::H4 => HeadingLevel::H5,
        HeadingLevel::H5 | HeadingLevel::H6 => HeadingLevel::H6,
    }
}

/// Returns the target of a link on the page, or `None` if the link is not kept.
fn target(link: CowStr<'_>) -> Option<CowStr<'_>> {
    match link.as_ref() {
        "bias.md" => Some("#bias".into()),
        "method.md" => Some("#method".into()),
        other if other.starts_with("https://") || other.starts_with('#') => Some(link),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::{BIAS, METHOD, render};

    #[test]
    fn headings_make_room_for_the_title_of_the_page() {
        let page = render("# One\n\n## Two\n").into_string();
        assert_eq!(page, "<h2>One</h2>\n<h3>Two</h3>\n");
        for text in [METHOD, BIAS] {
            assert!(render(text).into_string().starts_with("<h2>"));
        }
    }

    #[test]
    fn links_stay_on_the_page_or_leave_it_for_good() {
        let page = render("[a](bias.md) [b](../README.md) [c](https://example.org/)").into_string();
        let expected = "<p><a href=\"#bias\">a</a> b <a href=\"https://example.org/\">c</a></p>\n";
        assert_eq!(page, expected);
    }

    #[test]
    fn html_is_shown_and_not_obeyed() {
        let page = render("a <script>b</script>\n").into_string();
        assert_eq!(page, "<p>a &lt;script&gt;b&lt;/script&gt;</p>\n");
    }
}
