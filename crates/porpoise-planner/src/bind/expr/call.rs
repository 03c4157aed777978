//! Calls of functions, those with a syntax of their own included.

use porpoise_catalog::expression::Disallowed;
use porpoise_core::error::{Error, Result};
use porpoise_core::quote;
use porpoise_core::variables::SessionVars;
use porpoise_expr::function::ArgumentKind;
use porpoise_expr::typing::{self, hidden, operate};
use porpoise_expr::{Expr, ExprKind};
use porpoise_sql::ast;
use porpoise_types::{Charset, Collation, DataType, Value};

use super::{charset_named, null};
use crate::bind::Binder;

impl Binder<'_> {
    pub(super) fn function(&mut self, function: &ast::Function) -> Result<Expr> {
        let is_grouping =
            function.schema.is_none() && function.name.eq_ignore_ascii_case("grouping");
        let is_built_in =
            function.schema.is_none() && porpoise_functions::find(&function.name).is_some();
        if self.is_of_table && !is_built_in {
            let mut name = quote::name(&function.name);
            if let Some(schema) = &function.schema {
                name = format!("{}.{name}", quote::name(schema));
            }
            return Err(self.refuse_in_table(Disallowed::Function(name)));
        }
        if !is_built_in && !is_grouping {
            return self.stored_function(function);
        }
        if function.name.eq_ignore_ascii_case("name_const")
            && !function.args.iter().all(is_constant)
        {
            return Err(Error::wrong_arguments("NAME_CONST"));
        }
        let mut arguments = self.exprs(&function.args)?;
        // In JSON, TRUE is another value than 1.
        if function.name.to_ascii_lowercase().starts_with("json_") {
            for (argument, written) in arguments.iter_mut().zip(&function.args) {
                if let ast::Expr::Literal(ast::Literal::Bool(_)) = written {
                    *argument = typing::is_truth(argument.clone(), true, false)?;
                }
            }
        }
        if is_grouping {
            return Ok(Expr::new(
                ExprKind::Call {
                    function: &hidden::GROUPING,
                    arguments,
                },
                DataType::BIGINT,
                false,
            ));
        }
        call_function_as(&function.name, &function.written, arguments, self.session())
    }

    /// A call of a stored function.
    fn stored_function(&mut self, function: &ast::Function) -> Result<Expr> {
        let schema = match &function.schema {
            Some(schema) => schema.0.clone(),
            None => self.schema.clone().unwrap_or_default(),
        };
        if schema.is_empty() {
            return Err(Error::no_database_selected());
        }
        let schema = self.session().folded(&schema).into_owned();
        let name = function.name.as_str();
        let context = self.context;
        let found = match context.programs {
            Some(programs) => (programs.function)(context, &schema, name)?,
            None => None,
        };
        let written = match &function.schema {
            Some(_) => name,
            None => &*function.written,
        };
        let found = found.ok_or_else(|| Error::function_does_not_exist(&schema, written))?;
        if found.parameters != function.args.len() {
            let (expected, given) = (found.parameters, function.args.len());
            let name = format!("{schema}.{name}");
            return Err(Error::wrong_argument_count(
                "FUNCTION", name, expected, given,
            ));
        }
        let arguments = self.exprs(&function.args)?;
        if arguments
            .iter()
            .any(|argument| typing::compare::width(argument) != 1)
        {
            return Err(Error::operand_columns(1));
        }
        let called = self.accesses.call(&schema, name);
        self.routines.push(called);
        self.program_uses.push(found.uses);
        let kind = ExprKind::Stored {
            function: found.function,
            arguments,
        };
        Ok(Expr::new(kind, found.returns, true))
    }

    pub(super) fn date_arithmetic(&mut self, arithmetic: &ast::DateArithmetic) -> Result<Expr> {
        let name = if arithmetic.subtract {
            "DATE_SUB"
        } else {
            "DATE_ADD"
        };
        let arguments = vec![
            self.expr(&arithmetic.date)?,
            self.expr(&arithmetic.amount)?,
            typing::unit_literal(arithmetic.unit),
        ];
        call_function(name, arguments, self.session())
    }

    pub(super) fn trim(&mut self, trim: &ast::Trim) -> Result<Expr> {
        let session = self.session();
        let side = match trim.side {
            ast::TrimSide::Both => "BOTH",
            ast::TrimSide::Leading => "LEADING",
            ast::TrimSide::Trailing => "TRAILING",
        };
        let text = self.expr(&trim.expr)?;
        // Spaces are of any collation: there is none to agree on.
        let Some(remove) = &trim.remove else {
            let of_spaces = match trim.side {
                ast::TrimSide::Both => "TRIM",
                ast::TrimSide::Leading => "LTRIM",
                ast::TrimSide::Trailing => "RTRIM",
            };
            return call_function(of_spaces, vec![text], session);
        };
        let remove = self.expr(remove)?;
        call_function(
            "TRIM",
            vec![text, remove, typing::text_literal(side)],
            session,
        )
    }

    /// `CHAR(codes USING charset)`.
    pub(super) fn char(&mut self, codes: &[ast::Expr], charset: Option<&str>) -> Result<Expr> {
        let session = self.session();
        let codes = self.exprs(codes)?;
        match charset.map(charset_named).transpose()? {
            None | Some(Charset::Binary) => call_function("CHAR", codes, session),
            Some(charset) => {
                let function = &porpoise_functions::encoding::CHAR_USING;
                let call = operate::call_function(function, codes, session)?;
                let ty = typing::text_type(call.ty.max_chars(), charset.default_collation());
                Ok(Expr { ty, ..call })
            }
        }
    }

    pub(super) fn json_value(&mut self, value: &ast::JsonValue) -> Result<Expr> {
        /// Without RETURNING it is a CHAR(512).
        const CHARS: u64 = 512;
        let session = self.session();
        let (doc, path) = (self.expr(&value.doc)?, self.expr(&value.path)?);
        let doc = operate::convert_to(doc, ArgumentKind::Json, session)?;
        let ty = match &value.returning {
            None => typing::text_type(CHARS, Collation::UTF8MB4_0900_AI_CI),
            Some(to) => typing::cast_type(to, &doc, session)?,
        };
        let mut arguments = vec![doc, path];
        for response in [&value.on_empty, &value.on_error] {
            use porpoise_functions::json_scalar::JsonResponse as R;
            let (kind, default) = match response {
                None | Some(ast::JsonResponse::Null) => (R::Null, null()),
                Some(ast::JsonResponse::Error) => (R::Error, null()),
                Some(ast::JsonResponse::Default(value)) => {
                    (R::Default, typing::explicit(self.expr(value)?, ty.clone()))
                }
            };
            arguments.push(Expr::literal(Value::Int(kind as i64), DataType::BIGINT));
            arguments.push(default);
        }
        let mut call = operate::call_function(
            &porpoise_functions::json_scalar::JSON_VALUE,
            arguments,
            session,
        )?;
        call.ty = ty;
        Ok(call)
    }
}

/// Whether an expression is a literal, or one that is negated or has a collation.
fn is_constant(expr: &ast::Expr) -> bool {
    match expr {
        ast::Expr::Literal(_) | ast::Expr::Param(_) => true,
        ast::Expr::Unary(ast::UnaryOp::Neg, operand) => is_constant(operand),
        ast::Expr::Collate(collate) => is_constant(&collate.0),
        _ => false,
    }
}

/// A call of a function by name.
pub(in crate::bind) fn call_function(
    name: &str,
    arguments: Vec<Expr>,
    session: &SessionVars,
) -> Result<Expr> {
    call_function_as(name, name, arguments, session)
}

/// A call of a function by the name it has here; messages name it as it was written.
fn call_function_as(
    name: &str,
    written: &str,
    arguments: Vec<Expr>,
    session: &SessionVars,
) -> Result<Expr> {
    let Some(function) = porpoise_functions::find(name) else {
        let schema = session.schema.as_deref().unwrap_or_default();
        return Err(if schema.is_empty() {
            Error::no_database_selected()
        } else {
            Error::function_does_not_exist(schema, written)
        });
    };
    if !function.arity.admits(arguments.len()) {
        return Err(Error::parameter_count(written));
    }
    operate::call_function(function, arguments, session)
}
