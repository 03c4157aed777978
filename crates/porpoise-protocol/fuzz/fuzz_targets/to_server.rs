#![no_main]

#[allow(dead_code)]
#[path = "../../tests/decode/mod.rs"]
mod decode;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    decode::to_server(bytes);
});
