/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Layout: the contents of shared memory. An open device is one file. The file begins with struct
 * shm; a heap follows, which holds the rings. Peers map the whole file. _Alignas begins a new
 * cache line: fields that different processors write stand in different lines.
 */
#ifndef SHMV_LAYOUT_H
#define SHMV_LAYOUT_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	SHM_MAGIC = 0x53484d58,
	SHM_SLOT_MAX = 1023, /* open devices of a fabric; upper bits of a QP number */
	SHM_QP_BITS = 14,
	SHM_QP_MAX = 1 << SHM_QP_BITS, /* this and the next three: of one open device */
	SHM_CQ_MAX = 1 << 14,
	SHM_RQ_MAX = 1 << 15, /* shared receive queues, and receive queues of queue pairs */
	SHM_MR_MAX = 1 << 17, /* regions and windows */
	SHM_HERE_MAX = 232,   /* bytes of payload in a completion */
	SHM_BESIDES = 64,     /* payloads beside a completion queue */
	SHM_BESIDE_MAX = 8704, /* bytes of such a payload: 8 KiB with a protocol's header */
	/* Bits of shm_mr.access, above those of enum ibv_access_flags. */
	SHM_ACCESS_LKEY = 1 << 30,  /* the key opens the memory to the device's owner */
	SHM_ACCESS_QP = 1 << 29,    /* a window of type 2B: for the peer of one queue pair alone */
	SHM_ACCESS_WINDOW = 1 << 28,
};

struct shm_mr { /* a region or a bound window */
	uint64_t addr, len, iova; /* addr: the owner's; iova: the first that a peer names */
	uint32_t key, access, pd; /* key 0: free */
	uint32_t qpn;		  /* the window's queue pair, if SHM_ACCESS_QP */
	uint32_t region;	  /* of a window: the key of its region */
	uint32_t windows;	  /* of a region: number of windows bound to it */
	_Alignas(64) uint32_t users; /* number of accesses by peers that are under way */
};

struct shm_qp {
	_Alignas(64) uint32_t lock; /* held to deliver to it, and to change its state */
	uint32_t state;		    /* enum ibv_qp_state */
	uint32_t access, pd, rq, cq, rnr_timer, qpn, serial;
	uint16_t pkey;
	bool srq;
	uint64_t conn; /* the peer's queue pair number, and its first packet number */
};

struct shm_rq { /* a ring of indexes of work requests; senders take them by compare-and-swap */
	_Alignas(64) uint32_t head;
	uint32_t seen; /* the tail at the last look of a taker */
	_Alignas(64) uint32_t tail;
	_Alignas(64) uint32_t mask, stride, pd;
	uint32_t limit; /* an event is due when fewer receives are left; 0: no event */
	uint32_t error, serial;
	uint64_t ring, wqes; /* offsets in the file */
};

struct shm_rq_entry {
	uint32_t wqe, room; /* room: bytes of its scatter list */
};

struct shm_wqe {
	uint64_t wr_id;
	uint32_t sges;
	struct ibv_sge sge[];
};

enum shm_cqe_kind { /* bits */
	SHM_CQE_IMM = 1,
	SHM_CQE_WRITE = 2,
	SHM_CQE_HERE = 4,   /* the payload is in the completion */
	SHM_CQE_BESIDE = 8, /* the payload is beside the queue */
	SHM_CQE_SOLICITED = 16,
	SHM_CQE_LATER = 32, /* a poll sees it only after its time */
	SHM_CQE_DROPPED = 64,
	SHM_CQE_INV = 128,  /* imm is the key that was invalidated */
};

struct shm_cqe { /* of a receive */
	_Alignas(64) uint32_t seq; /* its index + 1, written last: the entry is valid */
	uint32_t qpn, wqe, len, imm;
	uint16_t rq;
	uint8_t status, kind;
	uint8_t data[SHM_HERE_MAX];
};
_Static_assert(sizeof(struct shm_cqe) == 256, "four lines");
_Static_assert(SHM_RQ_MAX <= 1 << 16, "shm_cqe.rq holds it");

struct shm_cq {
	_Alignas(64) uint32_t lock;
	uint32_t tail, seen; /* seen: the head at the last look of a producer */
	_Alignas(64) uint32_t head;
	_Alignas(64) uint32_t armed; /* 1: for any completion; 2: for solicited or failed ones */
	uint32_t error;	     /* overrun, or made to fail; in the line that each poll reads anyway */
	uint32_t mask, index, serial;
	int channel_fd;	     /* the writing end of the channel's pipe, in the owner's process */
	uint64_t channel_id; /* id of this pipe (segment.h); 0: there is no channel */
	uint64_t ring, besides, times; /* offsets in the file; times: for SHM_CQE_LATER */
};

enum { /* shm_head.gone */
	SHM_CLOSED = 1,
	SHM_FATAL = 2,
};

struct shm_head {
	uint32_t magic, dev, pid, gone;
	uint64_t nonce, start;
	int note_fd; /* the writing end of the pipe for notes, in the owner's process (note.h) */
	uint64_t note_id;
};

struct shm {
	struct shm_head head;
	_Alignas(64) uint32_t atomics; /* lock of all atomics on the owner's memory */
	_Alignas(4096) struct shm_mr mr[SHM_MR_MAX];
	struct shm_qp qp[SHM_QP_MAX];
	struct shm_cq cq[SHM_CQ_MAX];
	struct shm_rq rq[SHM_RQ_MAX];
	_Alignas(4096) uint8_t heap[];
};

static inline void *shm_at(struct shm *shm, uint64_t offset)
{
	return (uint8_t *)shm + offset;
}

#endif
