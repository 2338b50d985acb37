/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Layout: what lies in shared memory. An open device is one file; `struct shm` is its beginning,
 * and a heap follows, in which rings have their place. Peers map the whole file.
 * What one field's line of cache is shared with is chosen: _Alignas begins a new line.
 */
#ifndef SHMV_LAYOUT_H
#define SHMV_LAYOUT_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	SHM_MAGIC = 0x53484d58,
	SHM_SLOT_MAX = 1023, /* open devices of a fabric: the upper bits of a queue pair's number */
	SHM_QP_BITS = 14,
	SHM_QP_MAX = 1 << SHM_QP_BITS, /* of an open device, as the following */
	SHM_CQ_MAX = 1 << 14,
	SHM_RQ_MAX = 1 << 15, /* shared receive queues, and those of queue pairs */
	SHM_MR_MAX = 1 << 17, /* regions and windows */
	SHM_HERE_MAX = 232,   /* bytes of payload in a completion */
	SHM_BESIDES = 64,     /* payloads beside a completion queue */
	SHM_BESIDE_MAX = 8192, /* bytes of such a payload */
	/* Bits of shm_mr.access, above those of enum ibv_access_flags. */
	SHM_ACCESS_LKEY = 1 << 30,  /* the key opens the memory to the device's owner */
	SHM_ACCESS_QP = 1 << 29,    /* to one queue pair's peer alone: a window of type 2B */
	SHM_ACCESS_WINDOW = 1 << 28,
};

struct shm_mr { /* a region or a bound window */
	uint64_t addr, len, iova; /* address in the owner; first address that a peer names */
	uint32_t key, access, pd; /* key 0: free */
	uint32_t qpn;		  /* whose window it is, if SHM_ACCESS_QP */
	uint32_t region;	  /* of a window: its region's key */
	uint32_t windows;	  /* of a region: how many are bound */
	_Alignas(64) uint32_t users; /* accesses by peers under way */
};

struct shm_qp {
	_Alignas(64) uint32_t lock; /* for delivering to it, and for changing its state */
	uint32_t state;		    /* enum ibv_qp_state */
	uint32_t access, pd, rq, cq, rnr_timer, qpn, serial;
	uint16_t pkey;
	bool srq;
	uint64_t conn; /* the peer: queue pair number, and first packet number */
};

struct shm_rq { /* a ring of work requests' indexes, taken with compare-and-swap */
	_Alignas(64) uint32_t head;
	uint32_t seen; /* tail when a taker last looked */
	_Alignas(64) uint32_t tail;
	_Alignas(64) uint32_t mask, stride, pd;
	uint32_t limit; /* an event is due when fewer are left; 0: none */
	uint32_t error, serial;
	uint64_t ring, wqes; /* offsets in the file */
};

struct shm_rq_entry {
	uint32_t wqe, room; /* room: bytes */
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
	SHM_CQE_LATER = 32, /* not to be seen before its time */
	SHM_CQE_DROPPED = 64,
	SHM_CQE_INV = 128, /* imm is the key that was invalidated */
};

struct shm_cqe { /* of a receive */
	_Alignas(64) uint32_t seq; /* index + 1 when it is there */
	uint32_t qpn, wqe, len, imm;
	uint16_t rq;
	uint8_t status, kind;
	uint8_t data[SHM_HERE_MAX];
};
_Static_assert(sizeof(struct shm_cqe) == 256, "four lines");
_Static_assert(SHM_RQ_MAX <= 1 << 16, "shm_cqe.rq holds it");

struct shm_cq {
	_Alignas(64) uint32_t lock;
	uint32_t tail, seen; /* seen: head when a producer last looked */
	_Alignas(64) uint32_t head;
	_Alignas(64) uint32_t armed; /* 1: any, 2: solicited or failed */
	uint32_t error;	     /* overrun, or told to fail; beside what its owner reads */
	uint32_t mask, index, serial;
	int channel_fd;	     /* its owner's, to write to */
	uint64_t channel_id; /* 0: none */
	uint64_t ring, besides, times; /* offsets in the file; times: when an entry may be seen */
};

enum { /* shm_head.gone */
	SHM_CLOSED = 1,
	SHM_FATAL = 2,
};

struct shm_head {
	uint32_t magic, dev, pid, gone;
	uint64_t nonce, start;
	int note_fd; /* where its process takes notes (note.h) */
	uint64_t note_id;
};

struct shm {
	struct shm_head head;
	_Alignas(64) uint32_t atomics; /* lock of all atomics on its memory */
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
