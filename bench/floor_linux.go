package main

import (
	"bufio"
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"net/netip"
	"os"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/weirhq/weir/apikey"
	"github.com/weirhq/weir/wire"
)

// floor is a child that answers until its standard input ends: what a server costs that opens a
// datagram, seals an answer of its size, and does nothing else. Its answers are grants, so that the
// same clients can ask it: it knows beforehand where the numbers are that make one.
//
// It is written as well as Go allows: a socket for each worker that waits in the system, as many datagrams in a system
// call as there are, no poller, nothing shared, and the Go scheduler kept quiet as the server does it.
func floor(_ context.Context, _ []string) error {
	in := bufio.NewReader(os.Stdin)
	line, err := in.ReadBytes('\n')
	if err != nil {
		return err
	}
	var job floorJob
	if err := json.Unmarshal(line, &job); err != nil {
		return err
	}
	key, err := apikey.Parse(job.Key)
	if err != nil {
		return err
	}
	runtime.GOMAXPROCS(job.Workers + 1)
	port := 0
	for range job.Workers {
		w, err := newFloorWorker(key, &job, port)
		if err != nil {
			return err
		}
		port = w.port
		go w.run()
	}
	fmt.Println(netip.AddrPortFrom(job.Addr, uint16(port)))
	_, err = io.Copy(io.Discard, in) // until whoever started it is gone
	return err
}

// Where things are in a datagram in AES mode: header, then type and size, nonce, tag, PDU.
const (
	floorKeepPort = 36 // in the header: do not steer
	floorHead     = 40
	floorNonce    = floorHead + 4
	floorTag      = floorNonce + 12
	floorPDU      = floorTag + 16
	floorTokens   = 24
)

type floorWorker struct {
	fd     int
	port   int
	aead   cipher.AEAD
	nonce  [12]byte
	sealed uint32
	job    *floorJob

	in, out      [floorBatch]unix.Mmsghdr
	peers        [floorBatch]unix.RawSockaddrInet4
	inVec        [floorBatch]unix.Iovec
	outVec       [floorBatch]unix.Iovec
	inBuf        [floorBatch][2048]byte
	outBuf       [floorBatch][2048]byte
	plain        [2048]byte
	tokens       []int // where they are in a PDU
	shortest     int
	responseType uint16
}

const floorBatch = 32

func newFloorWorker(key apikey.Key, job *floorJob, port int) (*floorWorker, error) {
	const (
		head, guard, resource = 12, 36, 28
		response              = 0x5252
	)
	w := &floorWorker{job: job, responseType: response, shortest: wire.RequestSize(apikey.AuthAES, wire.Layout2, job.Guards, job.Resources, 0)}
	for i := range job.Resources {
		w.tokens = append(w.tokens, head+job.Guards*guard+i*resource+floorTokens)
	}
	secret := key.Secret()
	block, err := aes.NewCipher(secret[:])
	if err == nil {
		w.aead, err = cipher.NewGCM(block)
	}
	if err == nil {
		_, err = rand.Read(w.nonce[:8])
	}
	if err != nil {
		return nil, err
	}
	if w.fd, err = unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0); err != nil {
		return nil, err
	}
	if err := unix.SetsockoptInt(w.fd, unix.SOL_SOCKET, unix.SO_REUSEPORT, 1); err != nil {
		return nil, err
	}
	const buffer = 4 << 20
	_ = unix.SetsockoptInt(w.fd, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, buffer) // or what the system has
	if err := unix.Bind(w.fd, &unix.SockaddrInet4{Port: port, Addr: job.Addr.As4()}); err != nil {
		return nil, err
	}
	bound, err := unix.Getsockname(w.fd)
	if err != nil {
		return nil, err
	}
	here, ok := bound.(*unix.SockaddrInet4)
	if !ok {
		return nil, fmt.Errorf("the socket is bound to %v", bound)
	}
	w.port = here.Port
	for i := range w.in {
		w.inVec[i].Base, w.outVec[i].Base = &w.inBuf[i][0], &w.outBuf[i][0]
		w.inVec[i].SetLen(len(w.inBuf[i]))
		for h, vec := range map[*unix.Msghdr]*unix.Iovec{&w.in[i].Hdr: &w.inVec[i], &w.out[i].Hdr: &w.outVec[i]} {
			h.Name, h.Namelen = (*byte)(unsafe.Pointer(&w.peers[i])), unix.SizeofSockaddrInet4
			h.Iov = vec
			h.SetIovlen(1)
		}
	}
	return w, nil
}

func (w *floorWorker) run() {
	const yieldEvery = 128 // reads, which take less than 10 ms together when there is much to do
	for reads := 1; ; reads++ {
		if reads%yieldEvery == 0 {
			runtime.Gosched()
		}
		for i := range w.in {
			w.in[i].Hdr.Namelen = unix.SizeofSockaddrInet4
		}
		n, _, errno := unix.Syscall6(unix.SYS_RECVMMSG, uintptr(w.fd), uintptr(unsafe.Pointer(&w.in)), floorBatch, unix.MSG_WAITFORONE, 0, 0)
		if errno != 0 {
			continue
		}
		answers := 0
		for i := range int(n) {
			if w.answer(w.inBuf[i][:w.in[i].Len], answers) {
				w.out[answers].Hdr.Name = w.in[i].Hdr.Name
				answers++
			}
		}
		for sent := 0; sent < answers; {
			n, _, errno := unix.Syscall6(unix.SYS_SENDMMSG, uintptr(w.fd), uintptr(unsafe.Pointer(&w.out[sent])), uintptr(answers-sent), 0, 0, 0)
			if errno != 0 {
				n = 1
			}
			sent += int(n)
		}
	}
}

// answer opens a datagram and seals the i-th answer.
func (w *floorWorker) answer(b []byte, i int) bool {
	if len(b) < w.shortest {
		return false
	}
	n := copy(w.plain[:], b[floorPDU:])
	n += copy(w.plain[n:], b[floorTag:floorPDU])
	pdu, err := w.aead.Open(w.plain[:0], b[floorNonce:floorTag], w.plain[:n], b[:floorTag])
	if err != nil {
		return false
	}
	binary.LittleEndian.PutUint16(pdu, w.responseType)
	for _, at := range w.tokens {
		binary.LittleEndian.PutUint16(pdu[at:], 0)
	}
	out := w.outBuf[i][:]
	copy(out, b[:floorNonce])
	out[floorKeepPort] = 1
	w.sealed++
	binary.LittleEndian.PutUint32(w.nonce[8:], w.sealed)
	copy(out[floorNonce:], w.nonce[:])
	sealed := w.aead.Seal(out[floorPDU:floorPDU], w.nonce[:], pdu, out[:floorTag])
	copy(out[floorTag:floorPDU], sealed[len(pdu):])
	w.outVec[i].SetLen(floorPDU + len(pdu))
	return true
}
