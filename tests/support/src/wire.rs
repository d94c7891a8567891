//! Integers in the encodings of QUIC and of HTTP's header compression, for clients that misbehave as no library would.

/// A variable-length integer of QUIC (RFC 9000 §16).
pub fn var_int(value: u64) -> Vec<u8> {
    let length_bits = match value {
        0..=0x3f => 0,
        0x40..=0x3fff => 1,
        0x4000..=0x3fff_ffff => 2,
        _ => 3_u64,
    };
    let bytes = 1_usize << length_bits;
    let tagged = value | length_bits << (8 * bytes - 2);
    tagged.to_be_bytes()[8 - bytes..].to_vec()
}

/// Appends an integer with a prefix of `bits` bits in its first byte, whose other bits are those of `first` (RFC 7541
/// §5.1, RFC 9204 §4.1.1).
pub fn prefixed(out: &mut Vec<u8>, first: u8, bits: u32, value: usize) {
    let most = (1_usize << bits) - 1;
    let low = |value: usize| u8::try_from(value & 0x7f).unwrap();
    if value < most {
        out.push(first | low(value));
        return;
    }
    out.push(first | low(most));
    let mut rest = value - most;
    while rest > 0x7f {
        out.push(low(rest) | 0x80);
        rest >>= 7;
    }
    out.push(low(rest));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_are_written_as_the_rfcs_show_them() {
        // RFC 9000 §A.1, RFC 7541 §C.1.
        assert_eq!(var_int(37), [0x25]);
        assert_eq!(var_int(15_293), [0x7b, 0xbd]);
        assert_eq!(var_int(494_878_333), [0x9d, 0x7f, 0x3e, 0x7d]);
        assert_eq!(
            var_int(151_288_809_941_952_652),
            [0xc2, 0x19, 0x7c, 0x5e, 0xff, 0x14, 0xe8, 0x8c]
        );
        let written = |bits, value| {
            let mut out = Vec::new();
            prefixed(&mut out, 0, bits, value);
            out
        };
        assert_eq!(written(5, 10), [10]);
        assert_eq!(written(5, 1_337), [31, 154, 10]);
    }
}
