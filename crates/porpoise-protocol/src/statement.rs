//! Prepared statements: the reply to prepare, and the parameters of execute.
//!
//! ```text
//! prepared   00 │ statement 4 │ columns 2 │ parameters 2 │ 00 │ warnings 2, then both lists of definitions
//! parameters [count] │ NULL bits │ 1 │ type 2 [name], each │ value, each that isn't NULL or sent as long data
//!            [count] │ NULL bits │ 0 │ value, each …          the types are those of the execute before
//! ```
//!
//! The count and the names are there with QUERY_ATTRIBUTES. What has to be remembered from one
//! packet to the next, types and long data, is in [`Parameters`], one for each prepared statement
//! of a session.

use crate::Error;
use crate::codes::ColumnType;
use crate::flags::{Capabilities, CursorFlags};
use crate::frame::PacketWriter;
use crate::value::{Value, ValueType};
use crate::wire::{Fields, PutFields};

/// Parameters that a statement can have, MySQL's own limit.
pub const PARAMETERS_MAX: usize = 65_535;

/// The bit of a parameter's flag byte that says unsigned.
const UNSIGNED: u8 = 0x80;

/// The reply to COM_STMT_PREPARE. Behind it come as many parameter definitions and as many column
/// definitions as it says, each list followed by EOF without DEPRECATE_EOF, and left out if empty.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PrepareOk {
    /// Names the statement on this connection.
    pub statement: u32,
    /// Columns of its result; 0 if it has none.
    pub columns: u16,
    /// Its parameters.
    pub parameters: u16,
    /// Warnings.
    pub warnings: u16,
}

impl PrepareOk {
    /// Writes it.
    pub fn write(&self, writer: &mut PacketWriter) {
        writer.packet(|out| {
            out.push(0);
            out.put_u32(self.statement);
            out.put_u16(self.columns);
            out.put_u16(self.parameters);
            out.push(0);
            out.put_u16(self.warnings);
        });
    }

    /// Reads it.
    pub fn parse(payload: &[u8]) -> Result<Self, Error> {
        let mut fields = Fields::new(payload);
        if fields.u8()? != 0 {
            return Err(Error::Malformed("not the answer to a prepare"));
        }
        let statement = fields.u32()?;
        let columns = fields.u16()?;
        let parameters = fields.u16()?;
        fields.u8()?;
        let warnings = fields.u16().unwrap_or(0);
        Ok(Self {
            statement,
            columns,
            parameters,
            warnings,
        })
    }
}

/// The parameters of an execute as they came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ParameterBlock<'a> {
    bytes: &'a [u8],
    attributes: bool,
    count_available: bool,
}

impl<'a> ParameterBlock<'a> {
    pub(crate) fn new(bytes: &'a [u8], cursor: CursorFlags, capabilities: Capabilities) -> Self {
        Self {
            bytes,
            attributes: capabilities.contains(Capabilities::QUERY_ATTRIBUTES),
            count_available: cursor.contains(CursorFlags::PARAMETER_COUNT_AVAILABLE),
        }
    }

    /// The encoded parameters.
    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }
}

/// What a session remembers of one prepared statement's parameters.
///
/// ```
/// use porpoise_protocol::command::Command;
/// use porpoise_protocol::flags::Capabilities;
/// use porpoise_protocol::statement::Parameters;
/// use porpoise_protocol::value::Value;
///
/// // Execute statement 1 with one parameter, the BIGINT 42.
/// let payload = [0x17, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 8, 0, 42, 0, 0, 0, 0, 0, 0, 0];
/// let Command::StmtExecute(execute) = Command::parse(&payload, Capabilities::PROTOCOL_41)? else { unreachable!() };
/// let mut parameters = Parameters::new(1);
/// let mut values = parameters.decode(&execute.parameters)?;
/// assert_eq!(values.next(), Some(Ok(Value::Int(42))));
/// assert_eq!(values.next(), None);
/// # Ok::<(), porpoise_protocol::Error>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct Parameters {
    count: usize,
    /// The types of the last execute that sent any; query attributes have theirs behind the
    /// parameters'.
    types: Vec<ValueType>,
    /// Filled by COM_STMT_SEND_LONG_DATA; as short as can be.
    long: Vec<Option<Vec<u8>>>,
}

impl Parameters {
    /// For a statement of `count` parameters.
    pub fn new(count: usize) -> Self {
        Self {
            count,
            types: Vec::new(),
            long: Vec::new(),
        }
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.count
    }

    /// Appends to a parameter's long data, which grows to `max_bytes` at most
    /// (`max_allowed_packet`).
    ///
    /// Errors are [`Error::NoSuchParameter`] and [`Error::PacketTooLarge`]; the command has no
    /// reply, so the next execute has to tell them.
    pub fn append_long(
        &mut self,
        parameter: u16,
        bytes: &[u8],
        max_bytes: usize,
    ) -> Result<(), Error> {
        let at = usize::from(parameter);
        if at >= self.count {
            return Err(Error::NoSuchParameter);
        }
        if self.long.len() <= at {
            self.long.resize_with(at + 1, || None);
        }
        let long = self.long[at].get_or_insert_default();
        if long.len() + bytes.len() > max_bytes {
            return Err(Error::PacketTooLarge);
        }
        long.extend_from_slice(bytes);
        Ok(())
    }

    /// How many bytes of long data there are.
    pub fn long_bytes(&self) -> usize {
        self.long.iter().flatten().map(Vec::len).sum()
    }

    /// Forgets long data: after each execute, and on COM_STMT_RESET.
    pub fn clear_long(&mut self) {
        self.long = Vec::new();
    }

    /// The values of the parameters, one for each, in order.
    ///
    /// An execute that sends no types when none were sent before is malformed.
    #[inline]
    pub fn decode<'p>(&'p mut self, block: &ParameterBlock<'p>) -> Result<Values<'p>, Error> {
        let mut fields = Fields::new(block.bytes);
        let mut sent = self.count;
        if block.attributes && (self.count > 0 || block.count_available) {
            let count = fields.lenenc()?;
            if count < self.count as u64 || count > PARAMETERS_MAX as u64 {
                return Err(Error::Malformed(
                    "another number of parameters than the statement has",
                ));
            }
            sent = count as usize;
        }
        if sent == 0 {
            return Ok(Values::none());
        }
        let nulls = fields.bytes(sent.div_ceil(8))?;
        match fields.u8()? {
            0 => {}
            1 => take_types(&mut fields, &mut self.types, sent, block.attributes)?,
            _ => return Err(Error::Malformed("neither new types nor the old ones")),
        }
        let types = self
            .types
            .get(..self.count)
            .ok_or(Error::Malformed("parameters without types"))?;
        Ok(Values {
            fields,
            nulls,
            types,
            long: &self.long,
            at: 0,
        })
    }
}

#[inline]
fn take_types(
    fields: &mut Fields<'_>,
    types: &mut Vec<ValueType>,
    count: usize,
    named: bool,
) -> Result<(), Error> {
    types.clear();
    for _ in 0..count {
        types.push(take_type(fields)?);
        if named {
            fields.lenenc_bytes()?;
        }
    }
    Ok(())
}

#[inline]
fn take_type(fields: &mut Fields<'_>) -> Result<ValueType, Error> {
    let column_type = ColumnType::from_byte(fields.u8()?)
        .ok_or(Error::Malformed("a parameter of an unknown type"))?;
    let unsigned = fields.u8()? & UNSIGNED != 0;
    Ok(ValueType {
        column_type,
        unsigned,
    })
}

/// The values of an execute's parameters; after an error, no more.
#[derive(Clone, Debug)]
pub struct Values<'p> {
    fields: Fields<'p>,
    nulls: &'p [u8],
    types: &'p [ValueType],
    long: &'p [Option<Vec<u8>>],
    at: usize,
}

impl Values<'_> {
    fn none() -> Self {
        Self {
            fields: Fields::new(&[]),
            nulls: &[],
            types: &[],
            long: &[],
            at: 0,
        }
    }
}

impl<'p> Iterator for Values<'p> {
    type Item = Result<Value<'p>, Error>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        let &value_type = self.types.get(self.at)?;
        let at = self.at;
        self.at += 1;
        if let Some(Some(long)) = self.long.get(at) {
            return Some(Ok(long_value(long, value_type)));
        }
        if is_null(self.nulls, at) {
            return Some(Ok(Value::Null));
        }
        let value = Value::take(&mut self.fields, value_type);
        if value.is_err() {
            self.types = &[];
        }
        Some(value)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = self.types.len().saturating_sub(self.at);
        (left, Some(left))
    }
}

#[inline]
fn is_null(nulls: &[u8], at: usize) -> bool {
    nulls
        .get(at / 8)
        .is_some_and(|bits| bits >> (at % 8) & 1 != 0)
}

/// Long data is sent for strings; for any other type it is text all the same.
fn long_value(long: &[u8], ValueType { column_type, .. }: ValueType) -> Value<'_> {
    use ColumnType as T;
    match column_type {
        T::TinyBlob | T::MediumBlob | T::LongBlob | T::Blob | T::Bit | T::Geometry | T::Vector => {
            Value::Bytes(long)
        }
        T::OldDecimal | T::NewDecimal => Value::Decimal(long),
        _ => Value::Text(long),
    }
}

/// Appends the parameters of an execute for a [`ParameterBlock`]: NULL bits, types, values.
///
/// With QUERY_ATTRIBUTES the count and empty names go along. A parameter that `is_long`, sent as
/// long data before, is announced as a blob and has no value here.
#[inline]
pub fn put_parameters(
    out: &mut Vec<u8>,
    values: &[Value<'_>],
    is_long: impl Fn(usize) -> bool,
    capabilities: Capabilities,
) {
    if values.is_empty() {
        return;
    }
    let named = capabilities.contains(Capabilities::QUERY_ATTRIBUTES);
    if named {
        out.put_lenenc(values.len() as u64);
    }
    let nulls = out.len();
    out.put_zeros(values.len().div_ceil(8));
    out.push(1);
    for (at, value) in values.iter().enumerate() {
        let long = is_long(at);
        if *value == Value::Null && !long {
            out[nulls + at / 8] |= 1 << (at % 8);
        }
        let ValueType {
            column_type,
            unsigned,
        } = if long { Value::Bytes(&[]) } else { *value }.parameter_type();
        out.extend_from_slice(&[column_type as u8, if unsigned { UNSIGNED } else { 0 }]);
        if named {
            out.push(0);
        }
    }
    for (at, value) in values.iter().enumerate() {
        if !is_long(at) {
            value.put(out);
        }
    }
}

/// Writes COM_STMT_EXECUTE straight into `writer`.
#[inline]
pub fn write_execute(
    writer: &mut PacketWriter,
    statement: u32,
    cursor: CursorFlags,
    values: &[Value<'_>],
    is_long: impl Fn(usize) -> bool,
    capabilities: Capabilities,
) {
    writer.set_sequence(0);
    writer.packet(|out| {
        out.push(crate::codes::CommandCode::StmtExecute as u8);
        out.put_u32(statement);
        out.push(cursor.bits());
        out.put_u32(1);
        put_parameters(out, values, is_long, capabilities);
    });
}

/// Named values that come with a COM_QUERY, for `mysql_query_attribute_string()` to read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QueryAttributes<'a> {
    count: usize,
    nulls: &'a [u8],
    types: &'a [u8],
    values: &'a [u8],
}

impl<'a> QueryAttributes<'a> {
    /// Takes and checks them, so that the statement's text is what is left.
    pub(crate) fn take(fields: &mut Fields<'a>, capabilities: Capabilities) -> Result<Self, Error> {
        if !capabilities.contains(Capabilities::QUERY_ATTRIBUTES) {
            return Ok(Self::default());
        }
        let count = fields.lenenc()?;
        let sets = fields.lenenc()?;
        if count == 0 {
            return Ok(Self::default());
        }
        if count > PARAMETERS_MAX as u64 || sets != 1 {
            return Err(Error::Malformed("more query attributes than can be"));
        }
        let count = count as usize;
        let nulls = fields.bytes(count.div_ceil(8))?;
        if fields.u8()? != 1 {
            return Err(Error::Malformed("query attributes without types"));
        }
        let types = fields.rest();
        for _ in 0..count {
            take_type(fields)?;
            fields.lenenc_bytes()?;
        }
        let values = fields.rest();
        let mut type_fields = Fields::new(types);
        for at in 0..count {
            let value_type = take_type(&mut type_fields)?;
            type_fields.lenenc_bytes()?;
            if !is_null(nulls, at) {
                Value::take(fields, value_type)?;
            }
        }
        let used = |from: &'a [u8], rest: &[u8]| &from[..from.len() - rest.len()];
        Ok(Self {
            count,
            nulls,
            types: used(types, values),
            values: used(values, fields.rest()),
        })
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.count
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Each name and value.
    pub fn iter(&self) -> impl Iterator<Item = (&'a [u8], Value<'a>)> + use<'a> {
        let mut types = Fields::new(self.types);
        let mut values = Fields::new(self.values);
        let nulls = self.nulls;
        (0..self.count).map_while(move |at| {
            let value_type = take_type(&mut types).ok()?;
            let name = types.lenenc_bytes().ok()?;
            let value = if is_null(nulls, at) {
                Value::Null
            } else {
                Value::take(&mut values, value_type).ok()?
            };
            Some((name, value))
        })
    }

    pub(crate) fn put(&self, out: &mut Vec<u8>, capabilities: Capabilities) {
        if !capabilities.contains(Capabilities::QUERY_ATTRIBUTES) {
            return;
        }
        out.put_lenenc(self.count as u64);
        out.push(1);
        if self.count > 0 {
            out.extend_from_slice(self.nulls);
            out.push(1);
            out.extend_from_slice(self.types);
            out.extend_from_slice(self.values);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::Command;

    const PLAIN: Capabilities = Capabilities::PROTOCOL_41;

    fn decoded(
        parameters: &mut Parameters,
        payload: &[u8],
        capabilities: Capabilities,
    ) -> Result<Vec<String>, Error> {
        let Command::StmtExecute(execute) = Command::parse(payload, capabilities)? else {
            panic!("not an execute");
        };
        parameters
            .decode(&execute.parameters)?
            .map(|value| value.map(|value| format!("{value:?}")))
            .collect()
    }

    fn executed(values: &[Value<'_>], capabilities: Capabilities) -> Vec<u8> {
        let mut writer = PacketWriter::new();
        write_execute(
            &mut writer,
            1,
            CursorFlags::empty(),
            values,
            |_| false,
            capabilities,
        );
        writer.bytes()[4..].to_vec()
    }

    /// "COM_STMT_EXECUTE" in the protocol documentation.
    #[test]
    fn the_documented_example_is_read() {
        let payload = [
            0x17, 0x01, 0, 0, 0, 0, 0x01, 0, 0, 0, 0, 0x01, 0x0f, 0x00, 0x03, 0x66, 0x6f, 0x6f,
        ];
        let mut parameters = Parameters::new(1);
        assert_eq!(
            decoded(&mut parameters, &payload, PLAIN).unwrap(),
            ["Text([102, 111, 111])"]
        );
    }

    #[test]
    fn types_are_remembered_from_one_execute_to_the_next() {
        let mut parameters = Parameters::new(2);
        let first = executed(&[Value::UInt(7), Value::Null], PLAIN);
        assert_eq!(
            decoded(&mut parameters, &first, PLAIN).unwrap(),
            ["UInt(7)", "Null"]
        );
        let mut second = first[..10].to_vec();
        second.extend_from_slice(&[0b10, 0, 9, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(
            decoded(&mut parameters, &second, PLAIN).unwrap(),
            ["UInt(9)", "Null"]
        );
        assert!(decoded(&mut Parameters::new(2), &second, PLAIN).is_err());
    }

    #[test]
    fn long_data_stands_for_a_value_that_is_not_sent() {
        let mut parameters = Parameters::new(2);
        parameters.append_long(0, b"lo", 64).unwrap();
        parameters.append_long(0, b"ng", 64).unwrap();
        assert_eq!(
            parameters.append_long(0, &[0; 61], 64),
            Err(Error::PacketTooLarge)
        );
        assert_eq!(
            parameters.append_long(2, b"", 64),
            Err(Error::NoSuchParameter)
        );
        let payload = [
            0x17, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0xFC, 0, 0x08, 0, 5, 0, 0, 0, 0, 0, 0, 0,
        ];
        assert_eq!(
            decoded(&mut parameters, &payload, PLAIN).unwrap(),
            ["Bytes([108, 111, 110, 103])", "Int(5)"]
        );
        parameters.clear_long();
        assert!(decoded(&mut parameters, &payload, PLAIN).is_err());
    }

    #[test]
    fn names_and_count_are_read_with_query_attributes() {
        let capabilities = PLAIN | Capabilities::QUERY_ATTRIBUTES;
        let mut parameters = Parameters::new(1);
        let payload = executed(&[Value::Int(-3), Value::Text(b"attribute")], capabilities);
        assert_eq!(
            decoded(&mut parameters, &payload, capabilities).unwrap(),
            ["Int(-3)"]
        );
        assert!(decoded(&mut Parameters::new(3), &payload, capabilities).is_err());
    }

    /// "COM_QUERY" in the protocol documentation: one attribute, then the statement.
    #[test]
    fn query_attributes_come_before_the_statement() {
        let capabilities = PLAIN | Capabilities::QUERY_ATTRIBUTES;
        let mut payload = vec![0x03, 1, 1, 0, 1, 0xFE, 0, 2];
        payload.extend_from_slice(b"n1\x02v1SELECT 1");
        let Command::Query(query) = Command::parse(&payload, capabilities).unwrap() else {
            panic!("not a query");
        };
        assert_eq!(query.sql, b"SELECT 1");
        assert_eq!(
            query.attributes.iter().collect::<Vec<_>>(),
            [(&b"n1"[..], Value::Text(b"v1"))]
        );
        let mut writer = PacketWriter::new();
        Command::Query(query).write(&mut writer, capabilities);
        assert_eq!(&writer.bytes()[4..], payload);
        let Ok(Command::Query(query)) = Command::parse(b"\x03\x00\x01SELECT 2", capabilities)
        else {
            panic!("not a query");
        };
        assert_eq!(query.sql, b"SELECT 2");
    }

    proptest::proptest! {
        #[test]
        fn random_executes_never_panic(
            bytes in proptest::collection::vec(proptest::num::u8::ANY, 0..80),
            count in 0usize..20,
            attributes in proptest::bool::ANY,
        ) {
            let mut payload = vec![0x17, 1, 0, 0, 0, 8, 1, 0, 0, 0];
            payload.extend(bytes);
            let mut capabilities = PLAIN;
            capabilities.set(Capabilities::QUERY_ATTRIBUTES, attributes);
            let mut parameters = Parameters::new(count);
            let _ = decoded(&mut parameters, &payload, capabilities);
            let _ = decoded(&mut parameters, &payload, capabilities);
        }

        #[test]
        fn random_commands_never_panic(
            bytes in proptest::collection::vec(proptest::num::u8::ANY, 0..80),
            bits in proptest::num::u32::ANY,
        ) {
            let capabilities = Capabilities::from_bits_retain(bits);
            if let Ok(Command::Query(query)) = Command::parse(&bytes, capabilities) {
                query.attributes.iter().for_each(drop);
            }
        }
    }
}
