// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/nixl-otel/nixl-otel/internal/diagnose"
	"github.com/nixl-otel/nixl-otel/internal/units"
)

// linksInterval is the minimum time between two readings of the counters of links. A device may take milliseconds for each.
const linksInterval = 400 * time.Millisecond

// links returns the RDMA ports of the host that are active, and its network interfaces that are devices. It returns none if the
// host can't be seen, or if a port has no working counters: then nothing is known about the path of transfers.
func links(proc string) (list []diagnose.Link) {
	sys := filepath.Join(proc, "1", "root", "sys") // of the host, even in a container that sees its processes
	ports, err := filepath.Glob(filepath.Join(sys, "class", "infiniband", "*", "ports", "*"))
	if err != nil || len(ports) == 0 {
		return nil
	}
	for _, port := range ports {
		if state, err := os.ReadFile(filepath.Join(port, "state")); err != nil || !strings.Contains(string(state), "ACTIVE") {
			continue
		}
		const word, full = 4, math.MaxUint32 // counters of 32 bits stop at their end
		sent, okSent := number(port, "counters", "port_xmit_data")
		received, okReceived := number(port, "counters", "port_rcv_data")
		if !okSent || !okReceived || sent == full || received == full {
			return nil
		}
		device := filepath.Base(filepath.Dir(filepath.Dir(port)))
		list = append(list, diagnose.Link{Name: units.Printable(device + "/" + filepath.Base(port)), RDMA: true, Bytes: [2]uint64{word * sent, word * received}})
	}
	if len(list) == 0 {
		return nil
	}
	interfaces, _ := filepath.Glob(filepath.Join(sys, "class", "net", "*", "device")) // not of bridges and tunnels, whose bytes pass a device, too
	for _, device := range interfaces {
		dir := filepath.Dir(device)
		sent, okSent := number(dir, "statistics", "tx_bytes")
		received, okReceived := number(dir, "statistics", "rx_bytes")
		if !okSent || !okReceived {
			return nil
		}
		list = append(list, diagnose.Link{Name: units.Printable(filepath.Base(dir)), Bytes: [2]uint64{sent, received}})
	}
	return list
}

// number reads a counter.
func number(path ...string) (n uint64, ok bool) {
	text, err := os.ReadFile(filepath.Join(path...))
	if err != nil {
		return 0, false
	}
	n, err = strconv.ParseUint(strings.TrimSpace(string(text)), 10, 64)
	return n, err == nil
}
