//! Encryption and compression (MySQL 8.4 manual, 14.13).
//!
//! AES works on blocks of 16 bytes; `block_encryption_mode` says with which length of key, and how
//! blocks are chained:
//!
//! ```text
//! ecb      each block by itself, padded to whole blocks
//! cbc      each block is mixed with the encrypted block before it, padded to whole blocks
//! cfb, ofb a stream of encrypted blocks is mixed with the text, 128, 8 or 1 bits at a time: no padding
//! ```
//!
//! A compressed string is the length of what was compressed (4 bytes, the least first), then a zlib
//! stream.

use std::cell::RefCell;

use aes::cipher::generic_array::GenericArray;
use aes::cipher::{BlockDecrypt, BlockEncrypt, KeyInit};
use aes::{Aes128, Aes192, Aes256};
use miniz_oxide::deflate::core::{
    CompressorOxide, TDEFLFlush, TDEFLStatus, create_comp_flags_from_zip_params,
};
use miniz_oxide::inflate::TINFLStatus;
use miniz_oxide::inflate::core::{DecompressorOxide, inflate_flags};
use porpoise_core::error::{Error, Level, Result};
use porpoise_expr::function::{
    ArgumentKind, Call, Eval, Function, Purity, Returns, between, exactly, pure,
};
use porpoise_expr::typing::bytes_type;
use porpoise_expr::{EvalContext, Expr, Pace};
use porpoise_types::{DataType, Value};

use crate::string::bytes;

const BLOCK_BYTES: usize = 16;

/// zlib's default, between 0 and 9.
const COMPRESSION_LEVEL: i32 = 6;

/// How many bytes of a compressed string tell its length, and which of their bits do.
const LENGTH_BYTES: usize = 4;
const LENGTH_MASK: u32 = 0x3FFF_FFFF;

pub static TABLE: &[Function] = &[
    Function {
        name: "AES_DECRYPT",
        arity: between(2, 3),
        argument_kinds: &[ArgumentKind::Bytes],
        returns: Returns::By(same_length),
        eval: Eval::Values(|call, values| crypt(call, values, false)),
        purity: Purity::Stable,
    },
    Function {
        name: "AES_ENCRYPT",
        arity: between(2, 3),
        argument_kinds: &[ArgumentKind::Bytes],
        returns: Returns::By(padded_length),
        eval: Eval::Values(|call, values| crypt(call, values, true)),
        purity: Purity::Stable,
    },
    pure(
        "COMPRESS",
        exactly(1),
        &[ArgumentKind::Bytes],
        Returns::By(compressed_length),
        Eval::Strict(compress),
    ),
    pure(
        "UNCOMPRESS",
        exactly(1),
        &[ArgumentKind::Bytes],
        Returns::Fixed(|| DataType::Blob(porpoise_types::BlobSize::Long)),
        Eval::Strict(uncompress),
    ),
    pure(
        "UNCOMPRESSED_LENGTH",
        exactly(1),
        &[ArgumentKind::Bytes],
        Returns::Int,
        Eval::Strict(|call, values| {
            let packed = bytes(&values[0]);
            match length_of(packed) {
                Some((length, _)) => Ok(Value::Int(length.into())),
                None if packed.is_empty() => Ok(Value::Int(0)),
                None => {
                    corrupted(call);
                    Ok(Value::Int(0))
                }
            }
        }),
    ),
];

fn argument_bytes(arguments: &[Expr]) -> u64 {
    arguments
        .first()
        .map_or(0, |argument| argument.ty.max_chars())
}

fn same_length(arguments: &[Expr]) -> Result<DataType> {
    Ok(bytes_type(argument_bytes(arguments)))
}

fn padded_length(arguments: &[Expr]) -> Result<DataType> {
    let blocks = argument_bytes(arguments) / BLOCK_BYTES as u64 + 1;
    Ok(bytes_type(blocks * BLOCK_BYTES as u64))
}

/// zlib's bound for what can't be compressed.
fn compressed_length(arguments: &[Expr]) -> Result<DataType> {
    let length = argument_bytes(arguments);
    Ok(bytes_type(length + length / 1000 + 30))
}

// ------------------------------------------------------------------------------------------------
// AES
// ------------------------------------------------------------------------------------------------

/// A cipher, and the call that uses it, which may end between two blocks.
struct Cipher<'c> {
    key: Key,
    context: &'c dyn EvalContext,
    pace: RefCell<Pace>,
}

enum Key {
    Aes128(Box<Aes128>),
    Aes192(Box<Aes192>),
    Aes256(Box<Aes256>),
}

type Block = [u8; BLOCK_BYTES];

impl Key {
    /// A key of so many bytes: a longer one is folded onto itself, a shorter one filled with zeros.
    fn new(key: &[u8], length: usize) -> Key {
        let mut folded = [0; 32];
        for (at, byte) in key.iter().enumerate() {
            folded[at % length] ^= byte;
        }
        match length {
            16 => Key::Aes128(Box::new(Aes128::new(GenericArray::from_slice(
                &folded[..16],
            )))),
            24 => Key::Aes192(Box::new(Aes192::new(GenericArray::from_slice(
                &folded[..24],
            )))),
            _ => Key::Aes256(Box::new(Aes256::new(GenericArray::from_slice(&folded)))),
        }
    }
}

impl Cipher<'_> {
    fn encrypt(&self, block: &mut Block) -> Result<()> {
        let block = GenericArray::from_mut_slice(block);
        match &self.key {
            Key::Aes128(cipher) => cipher.encrypt_block(block),
            Key::Aes192(cipher) => cipher.encrypt_block(block),
            Key::Aes256(cipher) => cipher.encrypt_block(block),
        }
        self.pace.borrow_mut().walk(self.context, BLOCK_BYTES)
    }

    fn decrypt(&self, block: &mut Block) -> Result<()> {
        let block = GenericArray::from_mut_slice(block);
        match &self.key {
            Key::Aes128(cipher) => cipher.decrypt_block(block),
            Key::Aes192(cipher) => cipher.decrypt_block(block),
            Key::Aes256(cipher) => cipher.decrypt_block(block),
        }
        self.pace.borrow_mut().walk(self.context, BLOCK_BYTES)
    }
}

fn mix(block: &mut Block, with: &[u8]) {
    for (byte, other) in block.iter_mut().zip(with) {
        *byte ^= other;
    }
}

/// How blocks are chained.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Chaining {
    Ecb,
    Cbc,
    Cfb { bits: u8 },
    Ofb,
}

/// The key's length in bytes and the chaining that `block_encryption_mode` names.
fn mode(call: &Call<'_>) -> (usize, Chaining) {
    let session = &call.context.vars();
    let value = session.get("block_encryption_mode");
    let named = String::from_utf8_lossy(bytes(&value)).into_owned();
    let mut parts = named.split('-').skip(1);
    let length = match parts.next() {
        Some("192") => 24,
        Some("256") => 32,
        _ => 16,
    };
    let chaining = match parts.next() {
        Some("cbc") => Chaining::Cbc,
        Some("cfb1") => Chaining::Cfb { bits: 1 },
        Some("cfb8") => Chaining::Cfb { bits: 8 },
        Some("cfb128") => Chaining::Cfb { bits: 128 },
        Some("ofb") => Chaining::Ofb,
        _ => Chaining::Ecb,
    };
    (length, chaining)
}

fn crypt(call: &mut Call<'_>, values: &[Value], encrypts: bool) -> Result<Value> {
    let name = if encrypts {
        "aes_encrypt"
    } else {
        "aes_decrypt"
    };
    let (length, chaining) = mode(call);
    let mut vector: Block = [0; BLOCK_BYTES];
    match values.get(2) {
        Some(_) if chaining == Chaining::Ecb => {
            let ignored = Error::option_ignored("IV");
            call.context
                .vars_mut()
                .warn(Level::Warning, ignored.into_condition());
        }
        None if chaining == Chaining::Ecb => {}
        None => return Err(Error::parameter_count(name)),
        Some(given) => match bytes(given).first_chunk() {
            Some(given) => vector = *given,
            None if given.is_null() => return Ok(Value::Null),
            None => {
                return Err(Error::initialization_vector_too_short(name, BLOCK_BYTES));
            }
        },
    }
    if values[0].is_null() || values[1].is_null() {
        return Ok(Value::Null);
    }
    let text = bytes(&values[0]);
    let cipher = Cipher {
        key: Key::new(bytes(&values[1]), length),
        context: call.context,
        pace: RefCell::default(),
    };
    Ok(match (chaining, encrypts) {
        (Chaining::Ecb | Chaining::Cbc, true) => {
            Value::Bytes(encrypt_padded(&cipher, text, chaining, vector)?)
        }
        (Chaining::Ecb | Chaining::Cbc, false) => {
            decrypt_padded(&cipher, text, chaining, vector)?.map_or(Value::Null, Value::Bytes)
        }
        (Chaining::Ofb, _) => Value::Bytes(ofb(&cipher, text, vector)?),
        (Chaining::Cfb { bits }, _) => Value::Bytes(cfb(&cipher, text, vector, bits, encrypts)?),
    })
}

/// Each block in turn, the last one filled with bytes that tell how many they are (PKCS #7).
fn encrypt_padded(
    cipher: &Cipher<'_>,
    text: &[u8],
    chaining: Chaining,
    mut before: Block,
) -> Result<Vec<u8>> {
    let mut out = Vec::with_capacity(text.len() + BLOCK_BYTES);
    let (blocks, rest) = text.as_chunks::<BLOCK_BYTES>();
    let mut last = [(BLOCK_BYTES - rest.len()) as u8; BLOCK_BYTES];
    last[..rest.len()].copy_from_slice(rest);
    for block in blocks.iter().chain([&last]) {
        let mut block = *block;
        if chaining == Chaining::Cbc {
            mix(&mut block, &before);
        }
        cipher.encrypt(&mut block)?;
        before = block;
        out.extend_from_slice(&block);
    }
    Ok(out)
}

/// `None` for what `encrypt_padded` can't have made with this key.
fn decrypt_padded(
    cipher: &Cipher<'_>,
    text: &[u8],
    chaining: Chaining,
    mut before: Block,
) -> Result<Option<Vec<u8>>> {
    let (blocks, rest) = text.as_chunks::<BLOCK_BYTES>();
    if !rest.is_empty() {
        return Ok(None);
    }
    let mut out = Vec::with_capacity(text.len());
    for encrypted in blocks {
        let mut block = *encrypted;
        cipher.decrypt(&mut block)?;
        if chaining == Chaining::Cbc {
            mix(&mut block, &before);
        }
        before = *encrypted;
        out.extend_from_slice(&block);
    }
    let padding = out.last().copied().unwrap_or_default();
    let Some(kept) = out.len().checked_sub(usize::from(padding)) else {
        return Ok(None);
    };
    let whole = (1..=BLOCK_BYTES).contains(&usize::from(padding))
        && out[kept..].iter().all(|byte| *byte == padding);
    out.truncate(kept);
    Ok(whole.then_some(out))
}

fn ofb(cipher: &Cipher<'_>, text: &[u8], mut stream: Block) -> Result<Vec<u8>> {
    let mut out = text.to_vec();
    for block in out.chunks_mut(BLOCK_BYTES) {
        cipher.encrypt(&mut stream)?;
        for (byte, other) in block.iter_mut().zip(&stream) {
            *byte ^= other;
        }
    }
    Ok(out)
}

/// The register is encrypted, its first bits are mixed with the text's next ones, and the encrypted
/// bits move in.
fn cfb(
    cipher: &Cipher<'_>,
    text: &[u8],
    mut register: Block,
    bits: u8,
    encrypts: bool,
) -> Result<Vec<u8>> {
    let mut out = text.to_vec();
    match bits {
        128 => {
            for block in out.chunks_mut(BLOCK_BYTES) {
                cipher.encrypt(&mut register)?;
                for (byte, other) in block.iter_mut().zip(&mut register) {
                    let given = *byte;
                    *byte ^= *other;
                    *other = if encrypts { *byte } else { given };
                }
            }
        }
        8 => {
            for byte in &mut out {
                let mut stream = register;
                cipher.encrypt(&mut stream)?;
                let given = *byte;
                *byte ^= stream[0];
                register.rotate_left(1);
                register[BLOCK_BYTES - 1] = if encrypts { *byte } else { given };
            }
        }
        _ => {
            for byte in &mut out {
                for bit in (0..8).rev() {
                    let mut stream = register;
                    cipher.encrypt(&mut stream)?;
                    let given = *byte >> bit & 1;
                    let mixed = given ^ stream[0] >> 7;
                    *byte = *byte & !(1 << bit) | mixed << bit;
                    let moved = u128::from_be_bytes(register) << 1
                        | u128::from(if encrypts { mixed } else { given });
                    register = moved.to_be_bytes();
                }
            }
        }
    }
    Ok(out)
}

// ------------------------------------------------------------------------------------------------
// Compression
// ------------------------------------------------------------------------------------------------

fn corrupted(call: &mut Call<'_>) {
    let warning = Error::uncompress_corrupted();
    call.context
        .vars_mut()
        .warn(Level::Warning, warning.into_condition());
}

/// The length a compressed string claims, and its stream.
fn length_of(packed: &[u8]) -> Option<(u32, &[u8])> {
    let (length, stream) = packed.split_first_chunk::<LENGTH_BYTES>()?;
    (!stream.is_empty()).then_some((u32::from_le_bytes(*length) & LENGTH_MASK, stream))
}

fn compress(call: &mut Call<'_>, values: &[Value]) -> Result<Value> {
    let text = bytes(&values[0]);
    if text.is_empty() {
        return Ok(Value::Bytes(Vec::new()));
    }
    let length = text.len() as u32 & LENGTH_MASK;
    let mut packed = length.to_le_bytes().to_vec();
    compress_zlib(call.context, text, &mut packed)?;
    // A CHAR column would cut a space at the end.
    if packed.last() == Some(&b' ') {
        packed.push(b'.');
    }
    Ok(Value::Bytes(packed))
}

/// Appends a zlib stream. It is made piece by piece: the statement may end in between.
fn compress_zlib(context: &dyn EvalContext, mut text: &[u8], out: &mut Vec<u8>) -> Result<()> {
    const PIECE_BYTES: usize = 64 << 10;
    let flags = create_comp_flags_from_zip_params(COMPRESSION_LEVEL, 1, 0);
    let mut compressor = CompressorOxide::new(flags);
    let mut piece = vec![0; PIECE_BYTES];
    loop {
        context.check_interrupt()?;
        let finish = TDEFLFlush::Finish;
        let (status, read, written) =
            miniz_oxide::deflate::core::compress(&mut compressor, text, &mut piece, finish);
        out.extend_from_slice(&piece[..written]);
        text = &text[read..];
        match status {
            TDEFLStatus::Done => return Ok(()),
            TDEFLStatus::Okay => {}
            _ => return Err(Error::engine_error("a text that can't be compressed")),
        }
    }
}

fn uncompress(call: &mut Call<'_>, values: &[Value]) -> Result<Value> {
    let packed = bytes(&values[0]);
    if packed.is_empty() {
        return Ok(Value::Bytes(Vec::new()));
    }
    let Some((length, stream)) = length_of(packed) else {
        corrupted(call);
        return Ok(Value::Null);
    };
    let most = call.context.vars().max_allowed_packet;
    if u64::from(length) > most {
        let warning = Error::uncompress_too_big(most);
        call.context
            .vars_mut()
            .warn(Level::Warning, warning.into_condition());
        return Ok(Value::Null);
    }
    match decompress_zlib(call.context, stream, length as usize)? {
        Some(text) => Ok(Value::Bytes(text)),
        None => {
            corrupted(call);
            Ok(Value::Null)
        }
    }
}

/// What a zlib stream holds; `None` if it is none, or holds more than `most` bytes. It is read piece
/// by piece: the statement may end in between.
fn decompress_zlib(
    context: &dyn EvalContext,
    mut stream: &[u8],
    most: usize,
) -> Result<Option<Vec<u8>>> {
    const PIECE_BYTES: usize = 1 << 20;
    let flags = inflate_flags::TINFL_FLAG_PARSE_ZLIB_HEADER
        | inflate_flags::TINFL_FLAG_USING_NON_WRAPPING_OUTPUT_BUF;
    let mut decompressor = Box::<DecompressorOxide>::default();
    let (mut out, mut len) = (Vec::new(), 0);
    loop {
        context.check_interrupt()?;
        out.resize(most.min(len + PIECE_BYTES), 0);
        let (status, read, written) =
            miniz_oxide::inflate::core::decompress(&mut decompressor, stream, &mut out, len, flags);
        len += written;
        stream = &stream[read..];
        match status {
            TINFLStatus::Done => {
                out.truncate(len);
                return Ok(Some(out));
            }
            TINFLStatus::HasMoreOutput if len < most => {}
            _ => return Ok(None),
        }
    }
}
