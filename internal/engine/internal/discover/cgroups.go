// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package discover

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/fsnotify/fsnotify"

	"github.com/nixl-otel/nixl-otel/internal/process"
)

const (
	// maxCgroups limits the cgroups that are watched, maxFresh the new ones that are
	// examined. A container may be allowed to create cgroups. maxCgroupDepth limits their
	// depth.
	maxCgroups, maxFresh, maxCgroupDepth = 4096, 64, 12
	// maxProcs limits how many bytes of the list of a cgroup's processes are read.
	maxProcs = 64 << 10
)

// freshFor is how long the processes of a new cgroup are examined: a container runtime
// creates the cgroup first, and an agent may create its ring seconds after its start.
// freshEvery is the interval.
const freshFor, freshEvery = 5 * time.Second, 250 * time.Millisecond

// cgroups watches the cgroup hierarchy, where each new container has a new directory. So an
// agent in a container that lives only for seconds is found before the next search.
type cgroups struct {
	root  string
	news  chan struct{} // has a value when processes in new cgroups should be examined
	files *fsnotify.Watcher

	mu      sync.Mutex
	watched int
	fresh   []cgroup // oldest first
}

type cgroup struct {
	path  string
	until time.Time
}

// hierarchy returns the directory of a cgroup hierarchy that has all containers: the only one
// of cgroup v2, or one of cgroup v1.
func hierarchy(root string) string {
	if _, err := os.Stat(filepath.Join(root, "cgroup.controllers")); err == nil {
		return root
	}
	for _, name := range []string{"pids", "memory", "systemd"} {
		dir := filepath.Join(root, name)
		if _, err := os.Stat(filepath.Join(dir, "cgroup.procs")); err == nil {
			return dir
		}
	}
	return root
}

// watchCgroups starts to watch the cgroups below a directory until stopped is closed.
func watchCgroups(root string, stopped <-chan struct{}) (*cgroups, error) {
	c := &cgroups{root: hierarchy(root), news: make(chan struct{}, 1)}
	var err error
	if c.files, err = fsnotify.NewWatcher(); err != nil {
		return c, fmt.Errorf("watch %s: %w", c.root, err)
	}
	if err := c.watch(c.root, 0, false); err != nil {
		return c, fmt.Errorf("watch %s: %w", c.root, errors.Join(err, c.files.Close()))
	}
	go c.run(stopped)
	return c, nil
}

func (c *cgroups) run(stopped <-chan struct{}) {
	defer c.files.Close()
	tick := time.NewTicker(freshEvery)
	tick.Stop()
	for {
		select {
		case <-stopped:
			return
		case e, ok := <-c.files.Events:
			if !ok {
				return
			}
			if e.Has(fsnotify.Create) {
				c.created(e.Name)
				tick.Reset(freshEvery)
			}
		case err, ok := <-c.files.Errors: // the next search finds what is missed
			if !ok || errors.Is(err, fsnotify.ErrClosed) {
				return
			}
		case <-tick.C:
			select {
			case c.news <- struct{}{}:
			default:
			}
			if c.expire(time.Now()) {
				tick.Stop()
			}
		}
	}
}

// created adds a directory that was created, unless it is a file of a cgroup.
func (c *cgroups) created(path string) {
	if info, err := os.Lstat(path); err == nil && info.IsDir() {
		_ = c.watch(path, strings.Count(strings.TrimPrefix(path, c.root), "/"), true)
	}
}

// watch watches a cgroup and those below it. With fresh, it also adds them to the new ones.
// It doesn't enter the cgroup of a container in a pod, which may belong to the container.
func (c *cgroups) watch(path string, depth int, fresh bool) error {
	if fresh {
		c.add(path)
	}
	pod, container := process.ParseCgroup([]byte("0::" + strings.TrimPrefix(path, c.root)))
	if pod != "" && container != "" || depth > maxCgroupDepth || c.watched >= maxCgroups {
		return nil
	}
	c.watched++
	if err := c.files.Add(path); err != nil {
		return err
	}
	entries, err := os.ReadDir(path) // after the watch was added, so that none is missed
	for _, e := range entries {
		if !e.IsDir() {
			continue
		}
		if err := c.watch(filepath.Join(path, e.Name()), depth+1, fresh); err != nil && !isAbsent(err) {
			return err
		}
	}
	return err
}

func (c *cgroups) add(path string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.fresh = append(c.fresh, cgroup{path, time.Now().Add(freshFor)})
	c.fresh = slices.Delete(c.fresh, 0, max(len(c.fresh)-maxFresh, 0))
}

// expire removes cgroups that are no longer new. It reports whether none is left.
func (c *cgroups) expire(now time.Time) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.fresh = slices.DeleteFunc(c.fresh, func(g cgroup) bool { return now.After(g.until) })
	c.watched = len(c.files.WatchList())
	return len(c.fresh) == 0
}

// processes returns the PIDs of the processes in the new cgroups.
func (c *cgroups) processes() (pids []int) {
	c.mu.Lock()
	fresh := slices.Clone(c.fresh)
	c.mu.Unlock()
	for _, g := range fresh {
		b, err := readStart(filepath.Join(g.path, "cgroup.procs"), maxProcs)
		if err != nil {
			continue // the cgroup was removed
		}
		for line := range bytes.Lines(b) {
			if pid, err := strconv.Atoi(string(bytes.TrimSpace(line))); err == nil && pid > 0 {
				pids = append(pids, pid)
			}
		}
	}
	slices.Sort(pids)
	return slices.Compact(pids)
}

// readStart reads at most limit bytes of a file.
func readStart(path string, limit int64) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, limit))
}
