package sim

import "strconv"

var faultNames = [...]string{
	FaultPartition: "partition", FaultLoss: "loss", FaultDelay: "delay", FaultPause: "pause",
	FaultSlow: "slow", FaultKill: "kill", FaultForget: "forget", FaultClock: "clock",
	FaultMembers: "members", FaultEmpty: "empty", FaultResolver: "resolver", FaultStranger: "stranger",
	FaultWork: "work",
}

// String returns the kind in a word, such as "partition".
func (k FaultKind) String() string {
	if k > 0 && int(k) < len(faultNames) {
		return faultNames[k]
	}
	return "FaultKind(" + strconv.Itoa(int(k)) + ")"
}

var causeNames = [...]string{
	LostLink: "link", LostBurst: "burst", LostPartition: "partition", LostQueue: "queue", LostDead: "dead",
	LostSocket: "socket", LostKilled: "killed",
}

// String returns the cause in a word, such as "link".
func (c Cause) String() string {
	if c > 0 && int(c) < len(causeNames) {
		return causeNames[c]
	}
	return "Cause(" + strconv.Itoa(int(c)) + ")"
}
