//! The visitor of the syntax tree of a file.

use std::{mem, ops::Range};

use syn::{
    Block, Expr, ExprBinary, ExprConst, ExprMatch, ExprRepeat, ExprUnary, File, GenericArgument,
    ImplItemConst, ImplItemFn, ItemConst, ItemFn, ItemStatic, Pat, Signature, TraitItemConst,
    TraitItemFn, TypeArray, Variant,
    spanned::Spanned,
    visit::{self, Visit},
};

use crate::{ConstFn, Fixed, Kind, Node};

/// Returns the nodes of a file, outer ones before inner ones.
pub(crate) fn nodes(file: &File) -> Vec<Node> {
    let mut visitor = Visitor::default();
    visitor.visit_file(file);
    visitor.nodes
}

#[derive(Default)]
struct Visitor {
    nodes: Vec<Node>,
    /// The number of enclosing constants and patterns.
    constants: usize,
    const_fn: Option<ConstFn>,
}

impl Visitor {
    fn push(
        &mut self,
        kind: Kind,
        at: usize,
        range: Range<usize>,
        place: Range<usize>,
        fixed: Option<Fixed>,
    ) {
        let fixed = if self.constants > 0 {
            Some(Fixed::Constant)
        } else {
            fixed
        };
        let const_fn = self.const_fn.clone();
        self.nodes.push(Node {
            kind,
            at,
            range,
            place,
            fixed,
            const_fn,
        });
    }

    fn push_operator(&mut self, operator: Range<usize>, whole: Range<usize>, binds: bool) {
        let fixed = binds.then_some(Fixed::Let);
        self.push(Kind::Operator, operator.start, whole, operator, fixed);
    }

    fn within_constant(&mut self, visit: impl FnOnce(&mut Self)) {
        self.constants += 1;
        visit(self);
        self.constants -= 1;
    }

    /// A function within a constant runs when it is called.
    fn within_function(
        &mut self,
        signature: &Signature,
        body: &Block,
        visit: impl FnOnce(&mut Self),
    ) {
        let const_fn = signature.constness.map(|word| ConstFn {
            name: signature.ident.to_string(),
            at: word.span.byte_range().start,
        });
        let outer = (
            mem::replace(&mut self.const_fn, const_fn),
            mem::take(&mut self.constants),
        );
        if let Some(first) = body.stmts.first() {
            let open = body.brace_token.span.open().byte_range().end;
            let first = first.span().byte_range().start;
            self.push(
                Kind::Body,
                first,
                body.span().byte_range(),
                open..open,
                None,
            );
        }
        visit(self);
        (self.const_fn, self.constants) = outer;
    }
}

impl<'ast> Visit<'ast> for Visitor {
    fn visit_expr_binary(&mut self, binary: &'ast ExprBinary) {
        let whole = binary.left.span().byte_range().start..binary.right.span().byte_range().end;
        let binds = has_let(&binary.left) || has_let(&binary.right);
        self.push_operator(binary.op.span().byte_range(), whole, binds);
        visit::visit_expr_binary(self, binary);
    }

    fn visit_expr_unary(&mut self, unary: &'ast ExprUnary) {
        self.push_operator(
            unary.op.span().byte_range(),
            unary.span().byte_range(),
            false,
        );
        visit::visit_expr_unary(self, unary);
    }

    fn visit_expr_match(&mut self, whole: &'ast ExprMatch) {
        let last = whole.arms.len().saturating_sub(1);
        for (index, arm) in whole.arms.iter().enumerate() {
            if let Pat::Guard(pattern) = &arm.pat {
                let guard = pattern.guard.span().byte_range();
                let fixed = has_let(&pattern.guard).then_some(Fixed::Let);
                self.push(
                    Kind::Guard,
                    guard.start,
                    guard.clone(),
                    guard.start..guard.start,
                    fixed,
                );
            } else {
                let at = arm.span().byte_range().start;
                let arrow = arm.fat_arrow_token.span().byte_range().start;
                let fixed = (index == last).then_some(Fixed::Last);
                self.push(
                    Kind::Arm,
                    at,
                    whole.span().byte_range(),
                    arrow..arrow,
                    fixed,
                );
            }
        }
        visit::visit_expr_match(self, whole);
    }

    fn visit_item_fn(&mut self, function: &'ast ItemFn) {
        self.within_function(&function.sig, &function.block, |visitor| {
            visit::visit_item_fn(visitor, function)
        });
    }

    fn visit_impl_item_fn(&mut self, function: &'ast ImplItemFn) {
        self.within_function(&function.sig, &function.block, |visitor| {
            visit::visit_impl_item_fn(visitor, function)
        });
    }

    fn visit_trait_item_fn(&mut self, function: &'ast TraitItemFn) {
        if let Some(body) = &function.default {
            self.within_function(&function.sig, body, |visitor| {
                visit::visit_trait_item_fn(visitor, function)
            });
        }
    }

    fn visit_item_const(&mut self, item: &'ast ItemConst) {
        self.within_constant(|visitor| visit::visit_item_const(visitor, item));
    }

    fn visit_impl_item_const(&mut self, item: &'ast ImplItemConst) {
        self.within_constant(|visitor| visit::visit_impl_item_const(visitor, item));
    }

    fn visit_trait_item_const(&mut self, item: &'ast TraitItemConst) {
        self.within_constant(|visitor| visit::visit_trait_item_const(visitor, item));
    }

    fn visit_item_static(&mut self, item: &'ast ItemStatic) {
        self.within_constant(|visitor| visit::visit_item_static(visitor, item));
    }

    fn visit_expr_const(&mut self, block: &'ast ExprConst) {
        self.within_constant(|visitor| visit::visit_expr_const(visitor, block));
    }

    fn visit_expr_repeat(&mut self, array: &'ast ExprRepeat) {
        self.visit_expr(&array.expr);
        self.within_constant(|visitor| visitor.visit_expr(&array.len));
    }

    fn visit_type_array(&mut self, array: &'ast TypeArray) {
        self.within_constant(|visitor| visit::visit_type_array(visitor, array));
    }

    fn visit_generic_argument(&mut self, argument: &'ast GenericArgument) {
        self.within_constant(|visitor| visit::visit_generic_argument(visitor, argument));
    }

    fn visit_variant(&mut self, variant: &'ast Variant) {
        self.within_constant(|visitor| visit::visit_variant(visitor, variant));
    }

    fn visit_pat(&mut self, pattern: &'ast Pat) {
        if let Pat::Guard(guarded) = pattern {
            self.visit_pat(&guarded.pat);
            self.visit_expr(&guarded.guard);
        } else {
            self.within_constant(|visitor| visit::visit_pat(visitor, pattern));
        }
    }
}

/// Returns whether a condition binds variables (`let Some(n) = next && n > 0`).
fn has_let(condition: &Expr) -> bool {
    match condition {
        Expr::Let(_) => true,
        Expr::Binary(binary) => has_let(&binary.left) || has_let(&binary.right),
        _ => false,
    }
}
