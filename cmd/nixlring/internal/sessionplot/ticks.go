package sessionplot

import (
	"math"
	"strconv"

	"gonum.org/v1/plot"
)

// evenTicks are ticks in even steps, each with its label.
type evenTicks struct {
	whole bool // numbers only
	most  int  // ticks; 7 if 0
}

// Ticks implements [plot.Ticker].
func (e evenTicks) Ticks(low, high float64) (ticks []plot.Tick) {
	if !(high > low) {
		return nil
	}
	most := float64(e.most)
	if most == 0 {
		most = 7
	}
	step := math.Pow(10, math.Floor(math.Log10((high-low)/most)))
	for _, factor := range []float64{2, 2.5, 2} { // 2, 5, 10 times
		if (high-low)/step > most {
			step *= factor
		}
	}
	if e.whole {
		step = max(1, math.Ceil(step))
	}
	const rounding = 1e-9 // and plus 0, as that makes a 0 of -0
	for n := math.Ceil(low/step-rounding) + 0; n*step <= high+step*rounding; n++ {
		ticks = append(ticks, plot.Tick{Value: n * step, Label: strconv.FormatFloat(n*step, 'g', 6, 64)})
	}
	return ticks
}

// durationTicks are ticks of the distribution's steps: a label at each power of
// ten, a mark at each number between.
type durationTicks struct{}

// Ticks implements [plot.Ticker].
func (durationTicks) Ticks(low, high float64) (ticks []plot.Tick) {
	labels := []string{"1 µs", "10 µs", "100 µs", "1 ms", "10 ms", "100 ms", "1 s", "10 s", "100 s", "1000 s"}
	for decade, label := range labels {
		for n := 1; n < 10; n++ {
			v := (float64(decade) + math.Log10(float64(n))) * stepsPerDecade
			if v < low || v > high {
				continue
			}
			tick := plot.Tick{Value: v}
			if n == 1 {
				tick.Label = label
			}
			ticks = append(ticks, tick)
		}
	}
	return ticks
}
