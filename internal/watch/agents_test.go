//go:build linux && (amd64 || arm64)

package watch

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/nixl-otel/nixl-otel/ringbuf"
)

// A benchmark's agents: the test binary once more, as a process that has
// agentsVariable set to where their rings are to be, and countVariable to how
// many. It says "ready", and then, for each line on its standard input, writes
// busyEvents events to each ring and says so.
const (
	agentsVariable = "WATCH_TEST_AGENTS"
	countVariable  = "WATCH_TEST_COUNT"

	busyEvents = 40
	// crowdSlots makes rings of several pages, as those of agents are, and small
	// enough for ten thousand of them.
	crowdSlots = 512
)

// makeRings makes n rings in a directory.
func makeRings(dir string, n int) ([]*ringbuf.Writer, error) {
	agents := make([]*ringbuf.Writer, n)
	for i := range agents {
		var err error
		agents[i], err = ringbuf.Create(filepath.Join(dir, fmt.Sprintf("agent-%05d", i)), ringbuf.V4, crowdSlots)
		if err != nil {
			return nil, err
		}
	}
	return agents, nil
}

// startAgents starts n agents, and returns what makes them write.
func startAgents(b *testing.B, dir string, n int) (write func()) {
	b.Helper()
	cmd := exec.CommandContext(context.WithoutCancel(b.Context()), os.Args[0]) // it ends with its input
	cmd.Env = append(os.Environ(), agentsVariable+"="+dir, countVariable+"="+strconv.Itoa(n))
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		b.Fatal(err)
	}
	pipe, err := cmd.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		_ = in.Close() // Wait says what came of it
		if err := cmd.Wait(); err != nil {
			b.Error(err)
		}
	})
	out := bufio.NewReader(pipe)
	answer := func() {
		if _, err := out.ReadString('\n'); err != nil {
			b.Fatalf("agents: %v", err)
		}
	}
	answer()
	return func() {
		if _, err := fmt.Fprintln(in); err != nil {
			b.Fatalf("agents: %v", err)
		}
		answer()
	}
}

// beAgents is the agents' process.
func beAgents(dir string) {
	n, err := strconv.Atoi(os.Getenv(countVariable))
	if err == nil {
		err = agents(dir, n)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "agents:", err)
		os.Exit(1)
	}
}

func agents(dir string, n int) error {
	rings, err := makeRings(dir, n)
	if err != nil {
		return err
	}
	var events []ringbuf.Event
	for len(events) < busyEvents {
		events = append(events,
			ringbuf.NewEvent(ringbuf.TypeXferPostTime, 12), ringbuf.NewEvent(ringbuf.TypeXferTime, 340),
			ringbuf.NewEvent(ringbuf.TypeTxBytes, 1<<20), ringbuf.NewEvent(ringbuf.TypeTxRequests, 1))
	}
	fmt.Println("ready")
	for asked := bufio.NewScanner(os.Stdin); asked.Scan(); {
		for _, r := range rings {
			if pushed, err := r.PushBatch(events); pushed != len(events) || err != nil {
				return fmt.Errorf("%s: %d of %d events: %w", r.Path(), pushed, len(events), err)
			}
		}
		fmt.Println("written")
	}
	return nil
}
