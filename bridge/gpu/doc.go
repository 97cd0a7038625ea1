// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

// Package gpu reports metrics of this machine's GPUs through the OpenTelemetry SDK.
// NVIDIA's management library, NVML, provides them:
//
//	hw.gpu.memory.usage        By   memory in use
//	hw.gpu.memory.limit        By   memory in total
//	hw.gpu.memory.utilization  1    usage / limit
//	hw.gpu.utilization         1    share of the last sampling period, of up to 1 s, in which a kernel ran; hw.gpu.task=general
//	hw.temperature             Cel
//	hw.power                   W
//	hw.energy                  J    since the driver was loaded
//
// Names, kinds, units and attributes are those of OpenTelemetry's semantic
// conventions for hardware: hw.id is the GPU's UUID, hw.name its name, hw.vendor
// NVIDIA and hw.type gpu.
//
// Without a GPU or its driver, there are no data points and no error, so a program
// can use this package on any machine. A value that a GPU doesn't provide has no
// data point either, such as the utilization of a GPU in MIG mode, or any value of
// a GPU that is lost while the program runs.
//
// A [Monitor] and its MeterProvider can be closed in any order: the last values are
// reported for 1 minute after Close.
//
// A summary of package bridge/ringkernel shows the utilization with
//
//	gpus, err := gpu.New()
//	...
//	rt := ringkernel.NewRuntime(ringkernel.WithGPUUtilization(gpus.Utilization))
//
// # A module of its own
//
// The binding of NVML needs cgo and a C compiler, but neither CUDA nor the driver:
// the library is opened when the program runs. This package is a module of its own,
// so that programs without it need no C compiler. It imports nothing of the root
// module.
//
// # Installation
//
//	go get github.com/nixl-otel/nixl-otel/bridge/gpu
//
// Until the first release, follow the section "Go programs" of the repository's
// README.md instead.
package gpu
