//! What an expression can't be true without: a field that is equal to a string.

use cel::common::ast::{Expr, IdedExpr, LiteralValue, operators};
use linerate_hub::Guard;

use super::check::WHOLE;

/// Returns the first comparison of a field with a string that must hold for `node` to be true.
///
/// Where it does not hold, it is false or, if the field is missing or has another type, an error; neither makes a
/// conjunction true, whatever else it holds.
pub(super) fn find(node: &IdedExpr) -> Option<Guard> {
    let Expr::Call(call) = &node.expr else {
        return None;
    };
    let [left, right] = call.args.as_slice() else {
        return None;
    };
    match call.func_name.as_str() {
        operators::LOGICAL_AND => find(left).or_else(|| find(right)).map(|guard| Guard {
            is_sufficient: false,
            ..guard
        }),
        operators::EQUALS => compare(left, right).or_else(|| compare(right, left)),
        _ => None,
    }
}

fn compare(field: &IdedExpr, value: &IdedExpr) -> Option<Guard> {
    match (&field.expr, &value.expr) {
        (Expr::Ident(field), Expr::Literal(LiteralValue::String(value))) if field != WHOLE => {
            Some(Guard {
                field: field.clone(),
                value: value.inner().to_owned(),
                is_sufficient: true,
            })
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::find;
    use crate::filter::parse::parse;

    fn guard(text: &str) -> Option<(String, String)> {
        find(&parse(text).unwrap()).map(|guard| (guard.field, guard.value))
    }

    #[test]
    fn a_comparison_that_must_hold_is_found() {
        let level = Some(("level".to_owned(), "error".to_owned()));
        for text in [
            r#"level == "error""#,
            r#""error" == level"#,
            r#"level == "error" && bytes > 1000"#,
            r#"bytes > 1000 && (ok && level == 'error')"#,
        ] {
            assert_eq!(guard(text), level, "{text}");
        }
    }

    #[test]
    fn a_guard_is_sufficient_if_nothing_else_is_asked() {
        let is_sufficient = |text| find(&parse(text).unwrap()).unwrap().is_sufficient;
        assert!(is_sufficient(r#"(level == "error")"#));
        assert!(!is_sufficient(r#"level == "error" && bytes > 1000"#));
        assert!(!is_sufficient(r#"level == "error" && host == "a""#));
    }

    #[test]
    fn what_need_not_hold_is_no_guard() {
        for text in [
            r#"level == "error" || bytes > 1000"#,
            r#"!(level == "error")"#,
            r#"level != "error""#,
            r#"bytes == 1000"#,
            r#"data == "error""#,
            r#"data.level == "error""#,
            r#"(ok ? level == "error" : true)"#,
            r#""a" == "b""#,
        ] {
            assert_eq!(guard(text), None, "{text}");
        }
    }
}
