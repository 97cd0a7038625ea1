// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package chaos

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	bolt "go.etcd.io/bbolt"

	"github.com/nixl-otel/nixl-otel/internal/must"
	"github.com/nixl-otel/nixl-otel/ringbuf"
)

// unsaved is how many events of a ring killed Collectors can have committed without a checkpoint,
// because their storage was slow. Those are lost.
type unsaved struct {
	most       uint64
	checkpoint string // the newest one
	position   uint64 // the newest position beyond a checkpoint
}

// fastest is more than an agent writes per second.
const fastest = 2500

// mark is the position in a checkpoint. It is zero if the ring has none.
type mark struct {
	Layout        uint8
	Ino, From, To uint64
}

// findUnsaved compares the read positions of all rings with the checkpoints of a Collector that has
// ended. It can have committed whatever was in a ring at the newest save, and was written since.
func (k *killer) findUnsaved(t *testing.T) {
	t.Helper()
	checkpoints, since := k.checkpoints(t)
	paths, err := filepath.Glob(filepath.Join(k.rings, "[^h]*")) // not those of hostile neighbors
	must.OK(t, err)
	for _, path := range paths {
		var entry struct{ Mark mark }
		if c := checkpoints[path]; c != "" {
			must.OK(t, json.Unmarshal([]byte(c), &entry))
		}
		m := entry.Mark
		var file syscall.Stat_t
		h, err := ringbuf.Peek(path)
		if err != nil || syscall.Stat(path, &file) != nil || m.Layout != 0 && file.Ino != m.Ino {
			continue // the agent has restarted since
		}
		u := k.unsaved[path]
		if at := h.ReadPos; at != 0 && at != m.From && at != m.To && (at != u.position || checkpoints[path] != u.checkpoint) {
			most := h.Capacity + uint64(fastest*since.Seconds())
			k.unsaved[path] = unsaved{u.most + most, checkpoints[path], at}
		}
	}
}

// checkpoints returns what is stored, by path, and the time since the newest save.
func (k *killer) checkpoints(t *testing.T) (list map[string]string, since time.Duration) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(k.state, "*nixl_shm*"))
	must.OK(t, err)
	list = make(map[string]string)
	for _, file := range files {
		info, err := os.Stat(file)
		must.OK(t, err)
		since = time.Since(info.ModTime())
		db, err := bolt.Open(file, 0o600, &bolt.Options{ReadOnly: true})
		must.OK(t, err)
		must.OK(t, db.View(func(tx *bolt.Tx) error {
			if b := tx.Bucket([]byte("default")); b != nil {
				return b.ForEach(func(key, value []byte) error {
					for line := range strings.Lines(string(value)) {
						var entry struct{ ID string }
						if err := json.Unmarshal([]byte(line), &entry); err != nil {
							return fmt.Errorf("key %s: %w", key, err)
						}
						list[entry.ID] = line // the first line has no ID
					}
					return nil
				})
			}
			return nil
		}))
		must.OK(t, db.Close())
	}
	return list, since
}

// excused describes the events that may be missing.
func (k *killer) excused() string {
	var most uint64
	for _, u := range k.unsaved {
		most += u.most
	}
	return fmt.Sprintf("at most %d events of %d rings were committed without a checkpoint before a kill", most, len(k.unsaved))
}
