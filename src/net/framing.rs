//! From the bytes a worker hands over to the bytes its link carries.

use super::Bytes;

/// Headers around a message and around each of its packets.
///
/// ```text
///   message = header ∣ payload                      cut into packets of ≤ mtu − packet_header
///   packet  = [ frame … packet_header ∣ piece … ]   mtu counts packet_header and piece, not frame
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Framing {
    /// Bytes before each message.
    pub(crate) message_header: u64,
    /// Largest packet, its headers included.
    pub(crate) mtu: u64,
    /// Bytes of each packet's own headers, inside the MTU.
    pub(crate) packet_header: u64,
    /// Bytes around each packet, outside the MTU.
    pub(crate) frame: u64,
}

impl Framing {
    /// TCP over IPv4 over Ethernet.
    ///
    /// * message header, 16 bytes: kind (2), layer (2), epoch (4), length (8); ours;
    /// * MTU 1500 (RFC 894), of which 20 are the IPv4 header (RFC 791) and 20 the TCP header
    ///   without options (RFC 9293): 1460 are left;
    /// * around each packet 38 bytes (IEEE 802.3): preamble and start of frame 8, addresses and
    ///   type 14, check sequence 4, gap between frames 12.
    ///
    /// Left out: acknowledgements (they travel the other way), TCP options, and the padding of a
    /// last packet below Ethernet's 64 bytes, at most 5 bytes a message.
    pub const fn ethernet() -> Self {
        Self {
            message_header: 16,
            mtu: 1500,
            packet_header: 40,
            frame: 38,
        }
    }

    /// No headers: payload bytes are wire bytes.
    pub const fn none() -> Self {
        Self {
            message_header: 0,
            // Packets are counted all the same, because loss takes whole ones.
            mtu: 1500,
            packet_header: 0,
            frame: 0,
        }
    }

    /// Bytes a link carries for one message: with h = `message_header`, payload + h +
    /// ⌈(payload + h) / (mtu − `packet_header`)⌉ · (`packet_header` + frame).
    ///
    /// An empty message costs its headers; nothing in this crate sends one.
    pub const fn wire(&self, payload: Bytes) -> Bytes {
        let message = payload.0 + self.message_header;
        Bytes(message + self.packets(payload) * (self.packet_header + self.frame))
    }

    /// Packets of one message: ⌈(payload + `message_header`) / (mtu − `packet_header`)⌉.
    pub(crate) const fn packets(&self, payload: Bytes) -> u64 {
        (payload.0 + self.message_header).div_ceil(self.mtu - self.packet_header)
    }

    /// Bytes of `lost` packets that are sent again, each counted as the mean packet of a message
    /// of `wire` bytes; rounded up.
    pub(crate) const fn again(wire: Bytes, packets: u64, lost: u64) -> Bytes {
        if packets == 0 {
            return Bytes::ZERO;
        }
        // In 128 bits: a large message times many losses passes 2⁶⁴ before it is divided.
        let bytes = (wire.0 as u128 * lost as u128).div_ceil(packets as u128);
        Bytes(bytes as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn one_packet_holds_1444_bytes_of_payload() {
        let ethernet = Framing::ethernet();
        assert_eq!(ethernet.wire(Bytes(0)), Bytes(16 + 78));
        assert_eq!(ethernet.wire(Bytes(1444)), Bytes(1444 + 16 + 78));
        assert_eq!(ethernet.wire(Bytes(1445)), Bytes(1445 + 16 + 2 * 78));
    }

    #[test]
    fn full_packets_fill_a_wire_of_1538_bytes() {
        let ethernet = Framing::ethernet();
        let payload = 1000 * 1460 - 16;
        assert_eq!(ethernet.wire(Bytes(payload)), Bytes(1000 * 1538));
    }

    proptest! {
        #[test]
        fn without_framing_payload_is_wire(payload in 0_u64..1 << 50) {
            prop_assert_eq!(Framing::none().wire(Bytes(payload)), Bytes(payload));
        }

        #[test]
        fn more_payload_is_more_wire(payload in 0_u64..1 << 50, more in 1_u64..1 << 20) {
            let ethernet = Framing::ethernet();
            prop_assert!(ethernet.wire(Bytes(payload)) < ethernet.wire(Bytes(payload + more)));
        }
    }
}
