// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package session

import (
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/nixl-otel/nixl-otel/bridge/internal/text"
)

// columns lists the columns of the CSV.
var columns = [...]string{
	"timestamp", "device", "worker_instance", "duration_ms", "packet_id",
	"layer_idx", "operation", "success", "memory_used_mb", "error_message",
}

// bytesPerMB is the unit of memory_used_mb. The Python program doesn't define it,
// but the frameworks that it uses count in MiB.
const bytesPerMB = 1 << 20

// header returns the first line of the CSV.
func header() []byte {
	return []byte(strings.Join(columns[:], ",") + "\n")
}

// appendHead appends the fields between timestamp and duration_ms, including the
// commas around them. They are the same for all packets of a route.
func appendHead(b []byte, device, worker string) []byte {
	b = append(b, ',')
	b = text.AppendField(b, device)
	b = append(b, ',')
	b = text.AppendField(b, worker)
	return append(b, ',')
}

// appendTail appends the fields between packet_id and success, including the commas
// around them.
func appendTail(b []byte, layer int, operation string) []byte {
	b = append(b, ',')
	b = strconv.AppendInt(b, int64(layer), 10)
	b = append(b, ',')
	b = text.AppendField(b, operation)
	return append(b, ',')
}

// appendRow appends the row of a packet that ended at end.
func appendRow(b []byte, end time.Time, head, tail []byte, p *Packet, message string) []byte {
	b = appendDecimal(b, end.UnixMicro(), 6)
	b = append(b, head...)
	b = appendDecimal(b, int64(p.Duration.Round(time.Microsecond)/time.Microsecond), 3)
	b = append(b, ',')
	b = strconv.AppendInt(b, p.ID, 10)
	b = append(b, tail...)
	if p.Err == nil {
		b = append(b, "True,"...)
	} else {
		b = append(b, "False,"...)
	}
	b = appendDecimal(b, hundredthsOfMB(p.Memory), 2)
	b = append(b, ',')
	b = text.AppendField(b, message)
	return append(b, '\n')
}

// hundredthsOfMB rounds bytes to hundredths of a MiB. It computes the whole and the
// rest separately to prevent an overflow.
func hundredthsOfMB(bytes int64) int64 {
	whole, rest := bytes/bytesPerMB, bytes%bytesPerMB
	return whole*100 + (rest*100+bytesPerMB/2)/bytesPerMB
}

// appendDecimal appends v, in units of the last decimal, with the given number
// of decimals, at most six.
func appendDecimal(b []byte, v int64, decimals int) []byte {
	if v < 0 {
		b = append(b, '-')
		v = -v
	}
	// Dividing by the constant 10 is fast. This loop is most of the cost of
	// formatting a row.
	var fraction [6]byte
	for i := decimals - 1; i >= 0; i-- {
		fraction[i] = byte('0' + v%10)
		v /= 10
	}
	b = strconv.AppendInt(b, v, 10)
	b = append(b, '.')
	return append(b, fraction[:decimals]...)
}

// clean makes text valid UTF-8 without NUL. CSV readers reject NUL, and OTLP
// exporters reject the whole batch if one string is invalid.
func clean(s string) string {
	if utf8.ValidString(s) && strings.IndexByte(s, 0) < 0 {
		return s
	}
	return strings.ReplaceAll(text.Valid(s), "\x00", "\uFFFD")
}
