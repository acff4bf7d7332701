//! What the library's evaluation of optional fields lacks. In cel 0.13 `self.?field` fails where the
//! field is absent, and a plain selection from an optional value gives `false`; `self[?'field']`
//! is right. So the former are written as the latter, in the parsed expression.

use kube_cel::cel::common::ast::{
    CallExpr, EntryExpr, Expr, IdedExpr, LiteralValue, SelectExpr, operators,
};

/// Rewrites an expression and all within it.
pub(crate) fn rewrite(expression: &mut IdedExpr) {
    match &mut expression.expr {
        Expr::Call(call) => {
            call.target.iter_mut().for_each(|target| rewrite(target));
            call.args.iter_mut().for_each(rewrite);
            if call.func_name == operators::OPT_SELECT {
                operators::OPT_INDEX.clone_into(&mut call.func_name);
            }
        }
        Expr::Select(select) => {
            rewrite(&mut select.operand);
            if !select.test && is_optional(&select.operand) {
                let call = index(std::mem::take(select), expression.id);
                expression.expr = Expr::Call(call);
            }
        }
        Expr::Comprehension(all) => {
            for part in [
                &mut all.iter_range,
                &mut all.accu_init,
                &mut all.loop_cond,
                &mut all.loop_step,
                &mut all.result,
            ] {
                rewrite(part);
            }
        }
        Expr::List(list) => list.elements.iter_mut().for_each(rewrite),
        Expr::Map(map) => map.entries.iter_mut().for_each(|entry| rewrite_entry(&mut entry.expr)),
        Expr::Struct(made) => {
            made.entries.iter_mut().for_each(|entry| rewrite_entry(&mut entry.expr))
        }
        Expr::Unspecified | Expr::Ident(_) | Expr::Literal(_) => {}
    }
}

fn rewrite_entry(entry: &mut EntryExpr) {
    match entry {
        EntryExpr::StructField(field) => rewrite(&mut field.value),
        EntryExpr::MapEntry(entry) => {
            rewrite(&mut entry.key);
            rewrite(&mut entry.value);
        }
    }
}

fn index(select: SelectExpr, id: u64) -> CallExpr {
    let field = Expr::Literal(LiteralValue::String(select.field.as_str().into()));
    CallExpr {
        func_name: operators::OPT_INDEX.to_owned(),
        target: None,
        args: vec![*select.operand, IdedExpr { id, expr: field }],
    }
}

/// Whether a rewritten expression gives an optional value, by its form.
fn is_optional(expression: &IdedExpr) -> bool {
    let Expr::Call(call) = &expression.expr else { return false };
    call.func_name == operators::OPT_INDEX
        || (call.func_name == operators::INDEX && call.args.first().is_some_and(is_optional))
}
