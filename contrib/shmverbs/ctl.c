/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * shmv-ctl: changes a port while processes use it, and makes devices, queues and queue pairs
 * fail. The fabric is that of SHMV_FABRIC; `run shmv-ctl` sets it to the fabric of its profile.
 */
#include <arpa/inet.h>
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "atomic.h"
#include "conf.h"
#include "layout.h"
#include "lock.h"
#include "note.h"
#include "ports.h"

static const char usage[] =
	"usage: shmv-ctl DEVICE COMMAND, DEVICE: shm0, shm1, ...\n"
	"  show                     the port and its tables\n"
	"  counters                 requests of queue pairs that have ended\n"
	"  down, up                 the port's link\n"
	"  lid N                    another LID\n"
	"  mtu BYTES                InfiniBand: the link comes up again, with another MTU;\n"
	"                           RoCE: the interface's MTU, of which no event tells\n"
	"  gid INDEX ADDRESS|none   an entry of the table of GIDs; with RoCE of version 2\n"
	"  gid-move FROM TO         the entry at one index is at another\n"
	"  pkey INDEX VALUE         an entry of the table of partition keys; 0: none\n"
	"  reregister, sm-change    tells of it, and nothing else happens\n"
	"  fatal                    the device fails for good\n"
	"  heal                     a failed device: new processes can open it again\n"
	"  cq-error, srq-error      all completion queues, or shared receive queues, fail\n"
	"  qp-fatal [QPN]           a queue pair fails, or all do\n";

static struct shmv_port *port;
static uint32_t dev;

/* Sends a note to a process that has the device open. */
static void tell_one(const struct shm_head *head, const struct shmv_note *note)
{
	char path[48];
	int fd;

	snprintf(path, sizeof(path), "/proc/%u/fd/%d", head->pid, head->note_fd);
	fd = open(path, O_RDWR | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0 || write(fd, note, sizeof(*note)) != sizeof(*note))
		perror(path);
	if (fd >= 0)
		close(fd);
}

/* Sends an event to each such process; returns the number of processes. */
static int tell(enum ibv_event_type type, uint32_t index)
{
	DIR *dir = opendir(shmv_conf.dir);
	const struct dirent *at;
	int count = 0;

	while (dir && (at = readdir(dir))) {
		struct shmv_note note = {.kind = SHMV_NOTE_INJECT, .type = type, .index = index,
					 .slot = strtoul(at->d_name, NULL, 10)};
		int fd = note.slot ? openat(dirfd(dir), at->d_name, O_RDONLY | O_CLOEXEC) : -1;
		struct shm_head head;

		if (fd < 0)
			continue;
		if (read(fd, &head, sizeof(head)) == sizeof(head) && head.dev == dev &&
		    shmv_process_start(head.pid) == head.start) {
			tell_one(&head, &note);
			count++;
		}
		close(fd);
	}
	if (dir)
		closedir(dir);
	return count;
}

static int show(void)
{
	char text[INET6_ADDRSTRLEN];

	printf("shm%u: %s%s, mtu %u, lid %u, lmc %u, subnet manager %u, subnet %#lx\n", dev,
	       port->state == IBV_PORT_ACTIVE ? "active" : "down", port->fatal ? ", failed" : "",
	       port->mtu, port->lid, port->lmc, port->sm_lid, port->subnet);
	for (int i = 0; i < SHMV_GIDS; i++)
		if (port->gids[i].used)
			printf("gid %d: %s type %u\n", i,
			       inet_ntop(AF_INET6, &port->gids[i].gid, text, sizeof(text)),
			       port->gids[i].type);
	for (int i = 0; i < SHMV_PKEYS; i++)
		if (port->pkeys[i])
			printf("pkey %d: %#x\n", i, port->pkeys[i]);
	return 0;
}

static int set_gid(unsigned int index, const char *address)
{
	struct shmv_gid gid = {
		.gid = {.raw = {[10] = 0xff, [11] = 0xff}},
		.used = 1,
		.type = shmv_conf.infiniband ? IBV_GID_TYPE_IB : IBV_GID_TYPE_ROCE_V2,
	};

	if (index >= SHMV_GIDS)
		return 2;
	if (!strcmp(address, "none"))
		gid.used = 0;
	else if (inet_pton(AF_INET, address, &gid.gid.raw[12]) != 1 &&
		 inet_pton(AF_INET6, address, &gid.gid) != 1)
		return 2;
	port->gids[index] = gid;
	return 0;
}

static int move_gid(unsigned int from, unsigned int to)
{
	if (from >= SHMV_GIDS || to >= SHMV_GIDS || from == to)
		return 2;
	port->gids[to] = port->gids[from];
	port->gids[from].used = 0;
	return 0;
}

struct command {
	const char *name;
	int args; /* number of arguments, at least */
	enum ibv_event_type event;
};

static const struct command commands[] = {
	{"down", 0, IBV_EVENT_PORT_ERR},	{"up", 0, IBV_EVENT_PORT_ACTIVE},
	{"mtu", 1, IBV_EVENT_PORT_ACTIVE},
	{"lid", 1, IBV_EVENT_LID_CHANGE},	{"gid", 2, IBV_EVENT_GID_CHANGE},
	{"gid-move", 2, IBV_EVENT_GID_CHANGE},	{"pkey", 2, IBV_EVENT_PKEY_CHANGE},
	{"reregister", 0, IBV_EVENT_CLIENT_REREGISTER},
	{"sm-change", 0, IBV_EVENT_SM_CHANGE},	{"fatal", 0, IBV_EVENT_DEVICE_FATAL},
	{"cq-error", 0, IBV_EVENT_CQ_ERR},	{"srq-error", 0, IBV_EVENT_SRQ_ERR},
	{"qp-fatal", 0, IBV_EVENT_QP_FATAL},
};

/*
 * On RoCE the MTU follows the interface's, silently: Linux, drivers/infiniband/sw/rxe/rxe_net.c
 * (rxe_notify), hw/mlx5/main.c (mlx5_netdev_event).
 */
static bool is_silent(const struct command *command)
{
	return !strcmp(command->name, "mtu") && !shmv_conf.infiniband;
}

/* Makes the change of the port that the event is about; 2: the arguments are wrong. */
static int change(enum ibv_event_type event, const char *name, char **args)
{
	switch (event) {
	case IBV_EVENT_PORT_ERR:
		shmv_store32(&port->state, IBV_PORT_DOWN);
		return 0;
	case IBV_EVENT_PORT_ACTIVE:
		if (!strcmp(name, "mtu"))
			shmv_store32(&port->mtu, strtoul(args[0], NULL, 0));
		shmv_store32(&port->state, IBV_PORT_ACTIVE);
		return 0;
	case IBV_EVENT_LID_CHANGE:
		shmv_store32(&port->lid, strtoul(args[0], NULL, 0));
		return 0;
	case IBV_EVENT_GID_CHANGE:
		return strcmp(name, "gid") ? move_gid(atoi(args[0]), atoi(args[1])) :
					     set_gid(atoi(args[0]), args[1]);
	case IBV_EVENT_PKEY_CHANGE:
		if (strtoul(args[0], NULL, 0) >= SHMV_PKEYS)
			return 2;
		port->pkeys[strtoul(args[0], NULL, 0)] = strtoul(args[1], NULL, 0);
		return 0;
	case IBV_EVENT_DEVICE_FATAL:
		shmv_store32(&port->fatal, 1);
		return 0;
	default:
		return 0;
	}
}

static int run(int argc, char **argv)
{
	uint32_t index = SHMV_NOTE_ALL;

	if (!strcmp(argv[2], "show"))
		return show();
	if (!strcmp(argv[2], "counters")) {
		printf("sent %lu\nreceived %lu\n", port->sent, port->received);
		return 0;
	}
	if (!strcmp(argv[2], "heal")) {
		shmv_store32(&port->fatal, 0);
		return 0;
	}
	for (size_t i = 0; i < sizeof(commands) / sizeof(*commands); i++) {
		const struct command *command = &commands[i];

		if (strcmp(argv[2], command->name) || argc - 3 < command->args)
			continue;
		if (change(command->event, command->name, argv + 3))
			return 2;
		if (command->event == IBV_EVENT_QP_FATAL && argc > 3)
			index = strtoul(argv[3], NULL, 0) % SHM_QP_MAX;
		printf("told %d\n", is_silent(command) ? 0 : tell(command->event, index));
		return 0;
	}
	return 2;
}

int main(int argc, char **argv)
{
	struct shmv_ports *ports;
	int ret = 2;

	shmv_pid = getpid();
	if (argc < 3 || sscanf(argv[1], "shm%u", &dev) != 1)
		goto out;
	if (!shmv_conf_read())
		return 1;
	ports = shmv_ports_get();
	if (!ports || dev >= ports->devs)
		return 1;
	port = &ports->port[dev];
	ret = run(argc, argv);
out:
	if (ret == 2)
		fputs(usage, stderr);
	return ret;
}
