package ringkernel

import (
	"context"
	"fmt"
	"time"
)

// Monitor calls fn with a [Summary] at an interval, until the context is done.
// Then it returns nil, as being cancelled is how it ends. It returns an error
// for an interval that isn't positive, and the error of fn, which ends it too.
// With a disabled Runtime it only waits for the context.
//
//	go rt.Monitor(ctx, 5*time.Second, ringkernel.PrintTo(os.Stdout))
func (r *Runtime) Monitor(ctx context.Context, every time.Duration, fn func(Summary) error) error {
	if every <= 0 {
		return fmt.Errorf("monitor every %v: the interval must be more than 0", every)
	}
	if !r.Enabled() {
		<-ctx.Done()
		return nil
	}
	ticks := time.NewTicker(every)
	defer ticks.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticks.C:
		}
		if ctx.Err() != nil {
			return nil // both were ready
		}
		if err := fn(r.Summary()); err != nil {
			return err
		}
	}
}
