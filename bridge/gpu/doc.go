// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

// Package gpu reports metrics of the machine's NVIDIA GPUs through the OpenTelemetry
// SDK. NVIDIA's management library, NVML, provides the values:
//
//	hw.gpu.memory.usage        By   memory in use
//	hw.gpu.memory.limit        By   total memory
//	hw.gpu.memory.utilization  1    usage / limit
//	hw.gpu.utilization         1    share of the last sampling period (up to 1 s) during which a kernel ran; hw.gpu.task=general
//	hw.temperature             Cel
//	hw.power                   W
//	hw.energy                  J    since the driver was loaded
//
// Names, kinds, units and attributes follow OpenTelemetry's semantic conventions for
// hardware: hw.id is the GPU's UUID, hw.name is its name, hw.vendor is NVIDIA, and
// hw.type is gpu.
//
// Without a GPU or a driver, there are no data points and no error, so a program can
// use this package on any machine. Values that a GPU doesn't provide have no data
// points, such as the utilization of a GPU in MIG mode, or all values of a GPU that was
// lost.
//
// To include the utilization in the summaries of package bridge/ringkernel, use:
//
//	gpus := gpu.New()
//	rt := ringkernel.NewRuntime(ringkernel.WithGPUUtilization(gpus.Utilization))
//
// # Building
//
// NVML is used on Linux on amd64 and arm64, if the program is built with cgo. That takes a
// C compiler, but neither CUDA nor the driver: the library is loaded at run time. Other
// builds compile, but find no GPU. The file bridge/README.md in the repository
// shows how to install the package, which is a module of its own.
package gpu
