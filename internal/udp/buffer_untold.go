//go:build !(linux || darwin || freebsd)

package udp

// ReadBufferSetting is the system's setting that bounds [Options.ReadBuffer], or "".
const ReadBufferSetting = ""

func readBuffer(uintptr) int { return 0 }
