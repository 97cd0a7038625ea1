package watch

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/nixl-otel/nixl-otel/ringbuf"
)

// State tells what keeps the watcher from its work, or nil: a directory that
// can't be read, or rings of which not one can be opened.
func (w *Watcher) State() error {
	return errors.Join(append(w.missingDirectories(), w.allRefused())...)
}

func (w *Watcher) missingDirectories() (errs []error) {
	w.sharing.Lock()
	defer w.sharing.Unlock()
	for _, dir := range w.cfg.Directories {
		if err := w.missing[dir]; err != nil {
			errs = append(errs, fmt.Errorf("telemetry directory can't be read: %w", err))
		}
	}
	return errs
}

// allRefused is an error if there are rings, and none is open.
func (w *Watcher) allRefused() error {
	for _, a := range *w.rings.Load() {
		if a.open() {
			return nil
		}
	}
	w.sharing.Lock()
	causes := slices.Collect(maps.Values(w.causes))
	w.sharing.Unlock()
	if len(causes) == 0 {
		return nil
	}
	return fmt.Errorf("none of %d rings can be opened; the first: %s", len(causes), slices.Min(causes))
}

// isInert says whether an error means that a file is no ring, and won't become
// one until it changes.
func isInert(err error) bool {
	return errors.Is(err, ringbuf.ErrNotRing) || errors.Is(err, ringbuf.ErrNotRegular)
}
