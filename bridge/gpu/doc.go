// Package gpu reports what NVIDIA's management library, NVML, knows of the GPUs
// of this machine, through the OpenTelemetry SDK:
//
//	hw.gpu.memory.usage        By   bytes in use
//	hw.gpu.memory.limit        By   bytes there are
//	hw.gpu.memory.utilization  1    their quotient
//	hw.gpu.utilization         1    share of the last sampling period, up to a second, in which a kernel ran; hw.gpu.task=general
//	hw.temperature             Cel
//	hw.power                   W
//	hw.energy                  J    since the driver was loaded
//
// Names, kinds, units and attributes are those of OpenTelemetry's semantic
// conventions for hardware: hw.id is the GPU's UUID, hw.name its name, hw.vendor
// NVIDIA and hw.type gpu.
//
// Without a GPU, or without its driver, there are no points, and that is no
// error: a program can have this on everywhere. The same holds for a single
// figure that a GPU doesn't have, such as the utilization of one in MIG mode,
// and for a GPU that is lost while the program runs.
//
// # A module of its own
//
// NVML's binding needs cgo and a C compiler, though neither CUDA nor the driver:
// the library is opened when the program runs. So this package is a module of
// its own, and nobody else needs a C compiler. It imports nothing of the other
// module. A ring-kernel runtime has its summary show the utilization by
//
//	gpus, err := gpu.New()
//	...
//	rt := ringkernel.NewRuntime(ringkernel.WithGPUUtilization(gpus.Utilization))
//
// # Installation
//
//	go get github.com/nixl-otel/nixl-otel/bridge/gpu
//
// Until the first release, follow the section "Go programs" of the repository's
// README.md instead.
package gpu
