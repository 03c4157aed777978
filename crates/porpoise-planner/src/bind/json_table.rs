//! `JSON_TABLE(doc, path COLUMNS (…)) AS alias`: a table that is found in a document.
//!
//! It is bound as a derived table whose query has no SELECT: the document may name tables to its
//! left, as in LATERAL.

use std::sync::Arc;

use compact_str::CompactString;
use porpoise_core::error::{Error, Result};
use porpoise_core::variables::SessionVars;
use porpoise_expr::Expr;
use porpoise_expr::typing;
use porpoise_expr::typing::declared::{TypeContext, data_type};
use porpoise_sql::ast;
use porpoise_types::json::path::JsonPath;
use porpoise_types::{DataType, IntWidth, Json};

use crate::bind::Binder;
use crate::bind::from::Part;
use crate::plan::{JsonColumn, JsonOtherwise, JsonSource, JsonTable};
use crate::query::{Body, OutputColumn, Query};

impl Binder<'_> {
    pub(super) fn json_table(&mut self, table: &ast::JsonTable, nullable: bool) -> Result<Part> {
        if table.alias.is_empty() {
            return Err(Error::table_function_must_have_alias());
        }
        self.scope().show_all();
        let doc = self.expr(&table.doc);
        self.scope().visible = 0..0;
        let mut found: Vec<(CompactString, DataType)> = Vec::new();
        let bound = self.json_rows(&table.path, &table.columns, &mut found)?;
        let (names, types): (Vec<_>, Vec<_>) = found.into_iter().unzip();
        let slot = self.new_slot(table.alias.0.clone(), types.clone(), names.clone());
        let columns = names.into_iter().zip(types).enumerate();
        let columns = columns.map(|(at, (name, ty))| OutputColumn {
            expr: Expr::column(slot, at, ty, true),
            name,
            name_span: None,
            origin: None,
        });
        let query = Query {
            columns: columns.collect(),
            body: Body::JsonTable {
                slot,
                doc: doc?,
                table: Arc::new(bound),
            },
            order: Vec::new(),
            limit: None,
            offset: None,
        };
        let (alias, schema) = (table.alias.0.clone(), CompactString::default());
        self.query_part(query, alias, schema, None, nullable)
    }

    /// The rows of one path. Columns are numbered as they come, those of nested paths where they
    /// stand.
    fn json_rows(
        &mut self,
        path: &[u8],
        written: &[ast::JsonTableColumn],
        found: &mut Vec<(CompactString, DataType)>,
    ) -> Result<JsonTable> {
        let mut table = JsonTable {
            path: parse_path(path)?,
            columns: Vec::new(),
            nested: Vec::new(),
        };
        for column in written {
            let (name, ty, source) = match column {
                ast::JsonTableColumn::Nested { path, columns } => {
                    let nested = self.nested(|binder| binder.json_rows(path, columns, found))?;
                    table.nested.push(nested);
                    continue;
                }
                ast::JsonTableColumn::Ordinality(name) => {
                    let ty = DataType::Int {
                        width: IntWidth::Int,
                        unsigned: true,
                        zerofill: false,
                        display_width: None,
                    };
                    (name, ty, JsonSource::Ordinality)
                }
                ast::JsonTableColumn::Path {
                    name,
                    data_type,
                    collation,
                    exists,
                    path,
                    on_empty,
                    on_error,
                } => {
                    let ty = self.json_column_type(data_type, collation.as_ref(), name)?;
                    let path = parse_path(path)?;
                    let source = match exists {
                        true => JsonSource::Exists(path),
                        false => JsonSource::Value {
                            path,
                            on_empty: otherwise(on_empty.as_ref(), name)?,
                            on_error: otherwise(on_error.as_ref(), name)?,
                        },
                    };
                    (name, ty, source)
                }
            };
            if found
                .iter()
                .any(|(known, _)| known.eq_ignore_ascii_case(name))
            {
                return Err(Error::duplicate_column(name.as_str()));
            }
            table.columns.push(JsonColumn {
                position: found.len(),
                name: name.0.clone(),
                ty: ty.clone(),
                source,
            });
            found.push((name.0.clone(), ty));
        }
        Ok(table)
    }

    fn json_column_type(
        &self,
        written: &ast::DataType,
        collation: Option<&ast::Ident>,
        name: &str,
    ) -> Result<DataType> {
        let session = self.session();
        // What a column definition only warns of goes unsaid here.
        let mut unheard = SessionVars::new(session.connection_id);
        unheard.sql_mode = session.sql_mode;
        let mut context = TypeContext {
            session: &mut unheard,
            collation: session.collation,
            now_us: session.statement.started_us,
        };
        let ty = data_type(written, collation, name, &mut context)?;
        Ok(typing::slot_type(&ty))
    }
}

fn parse_path(path: &[u8]) -> Result<JsonPath> {
    JsonPath::parse(&String::from_utf8_lossy(path))
        .map_err(|error| Error::invalid_json_path(error.position))
}

fn otherwise(response: Option<&ast::JsonResponse>, column: &str) -> Result<JsonOtherwise> {
    Ok(match response {
        None | Some(ast::JsonResponse::Null) => JsonOtherwise::Null,
        Some(ast::JsonResponse::Error) => JsonOtherwise::Error,
        Some(ast::JsonResponse::Default(value)) => {
            let invalid = || Error::invalid_default(column);
            let ast::Expr::Literal(ast::Literal::String(text)) = &**value else {
                return Err(invalid());
            };
            let text = std::str::from_utf8(text).map_err(|_| invalid())?;
            JsonOtherwise::Default(Json::parse(text).map_err(|_| invalid())?)
        }
    })
}
