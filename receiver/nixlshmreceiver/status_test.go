// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package nixlshmreceiver

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"go.opentelemetry.io/collector/component/componentstatus"

	"github.com/nixl-otel/nixl-otel/internal/must"
	"github.com/nixl-otel/nixl-otel/internal/ringtest"
	"github.com/nixl-otel/nixl-otel/ringbuf"
)

// mustSay waits for a status and checks it.
func (h *harness) mustSay(want componentstatus.Status, parts ...string) {
	h.tb.Helper()
	e := h.status()
	text := ""
	if e.Err() != nil {
		text = e.Err().Error()
	}
	if e.Status() != want || !containsAll(text, parts) {
		h.tb.Errorf("status is %v (%s), want %v (%s)", e.Status(), text, want, strings.Join(parts, ", "))
	}
}

func TestStatusIsRecoverableErrorWhileADirectoryIsMissing(t *testing.T) {
	t.Parallel() // it waits for the next check of the directory
	dir := filepath.Join(t.TempDir(), "later")
	h := newHarness(t, dir, often).start()
	h.log("warn: ", "telemetry directory can't be read", "NIXL_TELEMETRY_DIR", dir)
	h.mustSay(componentstatus.StatusRecoverableError, "telemetry directory can't be read", dir, "no such file")

	// The status recovers once the directory exists.
	w := ring(t, dir, "agent", ringbuf.V4, 16)
	push(t, w, write(7, 1, 1)...)
	h.log("info: ", "telemetry directory can be read now", dir)
	h.mustSay(componentstatus.StatusOK)
	h.until(func(all agents) bool { return all["agent"].int(transmitted) == 7 })
	if n := len(h.statuses); n > 0 {
		t.Errorf("%d more statuses, want none", n)
	}
}

func TestStatusIsRecoverableErrorWhileNoRingCanBeOpened(t *testing.T) {
	t.Parallel() // it waits for the next check of the directory
	dir := t.TempDir()
	ring(t, dir, "agent", ringbuf.V4, 16)
	other, err := ringbuf.OpenReader(filepath.Join(dir, "agent"), ringbuf.Consume)
	must.OK(t, err)
	defer other.Close()
	h := newHarness(t, dir, often).start()
	h.mustSay(componentstatus.StatusRecoverableError, "none of 1 rings can be opened", "already being consumed")
	must.OK(t, other.Close())
	h.mustSay(componentstatus.StatusOK)
	h.next()
}

func TestStatusIsOKIfSomeRingsCanBeOpened(t *testing.T) {
	dir := t.TempDir()
	ring(t, dir, "good", ringbuf.V4, 16)
	h := newHarness(t, dir, often).start()
	ringtest.Make(t, filepath.Join(dir, "strange"), ringtest.NewHeader(99, 16), 16*16)
	h.log("warn: ", "ring can't be opened", "unknown ring version 99", "strange")
	h.next()
	h.next()
	if n := len(h.statuses); n > 0 {
		t.Errorf("status is %v, want none", h.status().Err())
	}
}

const holdRing = "NIXL_OTEL_TEST_HOLD_RING"

// TestMainOfTheOther isn't a test. It is the main function of the process that
// TestRingOfAnotherConsumerIsTakenOverWhenItExits starts.
func TestMainOfTheOther(t *testing.T) {
	path := os.Getenv(holdRing)
	if path == "" {
		t.Skip("only for TestRingOfAnotherConsumerIsTakenOverWhenItExits")
	}
	r, err := ringbuf.OpenReader(path, ringbuf.Consume)
	must.OK(t, err)
	defer r.Close()
	fmt.Println("held")
	_, _ = bufio.NewReader(os.Stdin).ReadString('\n') // until the test closes the pipe
}

// Two consumers would take events from each other.
func TestRingOfAnotherConsumerIsTakenOverWhenItExits(t *testing.T) {
	t.Parallel() // it waits for the next check of the directory
	dir := t.TempDir()
	w := ring(t, dir, "agent", ringbuf.V4, 16)
	push(t, w, write(3, 1, 1)...)
	other := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestMainOfTheOther$")
	other.Env = append(os.Environ(), holdRing+"="+w.Path())
	let, err := other.StdinPipe()
	must.OK(t, err)
	out, err := other.StdoutPipe()
	must.OK(t, err)
	must.OK(t, other.Start())
	lines := bufio.NewScanner(out)
	for lines.Scan() && lines.Text() != "held" {
		t.Log(lines.Text())
	}

	h := newHarness(t, dir, often).start()
	h.log("warn: ", "ring can't be opened", "agent", "already being consumed", "observe instead")
	h.mustSay(componentstatus.StatusRecoverableError, "already being consumed")
	if n, err := w.Len(); n != 4 || err != nil {
		t.Errorf("%d events are left in the ring (%v), want all 4", n, err)
	}
	must.OK(t, let.Close())
	_ = other.Wait() // its output is no longer read
	h.until(func(all agents) bool { return all["agent"].int(transmitted) == 3 })
	h.mustSay(componentstatus.StatusOK)
}
