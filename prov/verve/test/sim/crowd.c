/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Crowd: opening, the turns of members, checks of messages. */
#include "crowd.h"

#include <malloc.h>
#include <netinet/in.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_tagged.h>
#include <rdma/providers/fi_prov.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "../support/prov_once.h"
#include "base/addr.h"
#include "base/config.h"
#include "sim.h"

size_t __sanitizer_get_current_allocated_bytes(void) __attribute__((weak));

static const uint64_t stall = 120000000000; /* simulated ns without a message: it hangs */

enum { FIRST_PORT = 5000, ENTRIES = 16, SHARE = 32 };

struct crowd_host {
	struct fi_info *info;
	struct fid_domain *domain;
	struct fid_av *av;
	fi_addr_t *addr;
};

/* The beginning of every message, cut to max_len bytes. */
struct label {
	uint32_t from, to, number, len;
};

/* A buffer, and how many were posted before. */
struct receive {
	LIST_ENTRY(receive) link; /* in its member's, while it is posted */
	uint64_t place;
	uint8_t bytes[];
};

struct crowd_send {
	struct crowd_send *next;
	uint32_t to;
	size_t len;
	uint64_t flags;
	struct label label; /* a copy */
	uint8_t bytes[];
};

_Noreturn void crowd_fail(const struct crowd *crowd, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	vfprintf(stderr, fmt, args);
	va_end(args);
	fprintf(stderr, "\nseed %llu of %s failed, %.3f us into it: VERVE_SEED=%llu --filter %s\n",
		(unsigned long long)crowd->seed, crowd->options->name, fake_net_time() / 1e3,
		(unsigned long long)crowd->seed, crowd->options->name);
	abort();
}

static void check(const struct crowd *crowd, long ret, const char *what)
{
	if (ret < 0)
		crowd_fail(crowd, "%s: %s", what, fi_strerror((int)-ret));
}

static void *allocate(size_t count, size_t size)
{
	void *memory = calloc(count, size);

	if (!memory)
		abort();
	return memory;
}

uint64_t crowd_random(struct crowd *crowd)
{
	uint64_t z = crowd->random += 0x9e3779b97f4a7c15;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
	z = (z ^ z >> 27) * 0x94d049bb133111eb;
	return z ^ z >> 31;
}

uint32_t crowd_number(const char *variable, uint32_t otherwise)
{
	const char *text = getenv(variable);

	return text ? (uint32_t)strtoul(text, NULL, 0) : otherwise;
}

void crowd_seeds(uint32_t seeds, void (*run)(uint64_t seed))
{
	const char *one = getenv("VERVE_SEED");

	if (one) {
		run(strtoull(one, NULL, 0));
		return;
	}
	seeds = crowd_number("VERVE_SEEDS", seeds);
	for (uint64_t seed = 1; seed <= seeds; seed++)
		run(seed);
}

size_t crowd_heap(void)
{
	struct mallinfo2 info;

	if (__sanitizer_get_current_allocated_bytes)
		return __sanitizer_get_current_allocated_bytes();
	info = mallinfo2();
	return info.uordblks + info.hblkhd;
}

/* Plans. */

bool crowd_all_to_all(const struct crowd *crowd, uint32_t from, uint64_t n, uint32_t *to)
{
	uint32_t others = crowd->options->members - 1, at = (uint32_t)(n % others);

	/* The second half of them the other way round, so that some meet. */
	*to = (from + 1 + (2 * from > others ? at : others - 1 - at)) % (others + 1);
	return n < (uint64_t)others * crowd->options->rounds;
}

bool crowd_upwards(const struct crowd *crowd, uint32_t from, uint64_t n, uint32_t *to)
{
	*to = from + 1 + (uint32_t)n;
	return *to < crowd->options->members;
}

bool crowd_to_one(const struct crowd *crowd, uint32_t from, uint64_t n, uint32_t *to)
{
	*to = 0;
	return from && n < crowd->options->rounds;
}

/* Receiving. */

static void post(struct crowd *crowd, struct crowd_member *member, struct receive *receive)
{
	receive->place = ++member->places;
	LIST_INSERT_HEAD(&member->receives_posted, receive, link);
	check(crowd,
	      fi_trecv(member->ep, receive->bytes, crowd->options->max_len, NULL, FI_ADDR_UNSPEC, 0,
		       UINT64_MAX, receive),
	      "fi_trecv");
	member->posted++;
}

void crowd_recv_from(struct crowd *crowd, uint32_t to, uint32_t from, uint32_t number)
{
	struct crowd_member *member = &crowd->members[to];
	struct receive *receive = allocate(1, sizeof(*receive) + crowd->options->max_len);

	receive->place = ++member->places;
	LIST_INSERT_HEAD(&member->receives_posted, receive, link);
	check(crowd,
	      fi_trecv(member->ep, receive->bytes, crowd->options->max_len, NULL, FI_ADDR_UNSPEC,
		       (uint64_t)from << 32 | number, 0, receive),
	      "fi_trecv");
	member->posted++;
}

static uint8_t pattern(const struct label *label, size_t i)
{
	return (uint8_t)(label->from * 31 + label->number * 7 + i * 3);
}

/* Messages of one sender match in its order; they may complete in another. */
static void check_order(struct crowd *crowd, uint32_t to, const struct label *label, uint64_t place)
{
	uint32_t rounds = crowd->options->rounds;
	uint64_t *places = &crowd->members[to].place_of[(size_t)label->from * rounds];
	uint32_t number = label->number;

	if (number >= rounds || places[number])
		crowd_fail(crowd, "member %u: message %u of %u comes twice", to, number,
			   label->from);
	places[number] = place;
	if ((number && places[number - 1] > place) ||
	    (number + 1 < rounds && places[number + 1] && places[number + 1] < place))
		crowd_fail(crowd, "member %u: message %u of %u is out of order", to, number,
			   label->from);
}

static void check_message(struct crowd *crowd, uint32_t to, const struct fi_cq_tagged_entry *entry)
{
	const struct receive *receive = entry->op_context;
	const uint8_t *bytes = receive->bytes;
	struct crowd_member *member = &crowd->members[to];
	struct label label;

	memcpy(&label, bytes, sizeof(label));
	if (label.to != to || label.from >= crowd->options->members || label.len != entry->len ||
	    entry->tag != ((uint64_t)label.from << 32 | label.number))
		crowd_fail(crowd, "member %u: a message that nobody sent it", to);
	check_order(crowd, to, &label, receive->place);
	for (size_t i = sizeof(label); i < label.len; i++)
		if (bytes[i] != pattern(&label, i))
			crowd_fail(crowd, "member %u: byte %zu of %u's message %u is wrong", to, i,
				   label.from, label.number);
	member->received++;
	crowd->received++;
	crowd->due--;
}

/* Returns how many completions there were. */
static int read_cq(struct crowd *crowd, uint32_t index)
{
	struct crowd_member *member = &crowd->members[index];
	struct fi_cq_tagged_entry entry[ENTRIES];
	struct fi_cq_err_entry error = {0};
	ssize_t count = fi_cq_read(member->cq, entry, ENTRIES);

	if (count == -FI_EAGAIN)
		return 0;
	if (count == -FI_EAVAIL) {
		fi_cq_readerr(member->cq, &error, 0);
		crowd_fail(crowd, "member %u: an operation fails: %s, %s", index,
			   fi_strerror(error.err),
			   fi_cq_strerror(member->cq, error.prov_errno, error.err_data, NULL, 0));
	}
	check(crowd, count, "fi_cq_read");
	for (ssize_t i = 0; i < count; i++) {
		if (entry[i].flags & FI_RECV) {
			check_message(crowd, index, &entry[i]);
			LIST_REMOVE((struct receive *)entry[i].op_context, link);
			member->posted--;
			if (member->posted < member->receives)
				post(crowd, member, entry[i].op_context);
			else
				free(entry[i].op_context);
		} else {
			struct crowd_send *send = entry[i].op_context;

			send->next = member->unused;
			member->unused = send;
			member->completed++;
		}
	}
	return (int)count;
}

/* Sending. */

static size_t choose_len(struct crowd *crowd, uint32_t from)
{
	size_t most = crowd->options->max_len;

	if (crowd->options->equal)
		return most;
	if (from && from == crowd->options->eager)
		return most < verve_config.eager_size ? most : verve_config.eager_size;

	if (crowd_random(crowd) % 2 && most > 1000)
		most = 1000;
	return sizeof(struct label) + crowd_random(crowd) % (most - sizeof(struct label) + 1);
}

static struct crowd_send *prepare(struct crowd *crowd, struct crowd_member *member, uint32_t from,
				  uint32_t to)
{
	struct crowd_send *send = member->unused;
	size_t i;

	if (send)
		member->unused = send->next;
	else
		send = allocate(1, sizeof(*send) + crowd->options->max_len);
	send->to = to;
	send->len = choose_len(crowd, from);
	send->flags =
		crowd->options->acknowledged && crowd_random(crowd) % 2 ? FI_DELIVERY_COMPLETE : 0;
	send->label = (struct label){from, to, member->sent[to]++, (uint32_t)send->len};
	memcpy(send->bytes, &send->label, sizeof(send->label));
	for (i = sizeof(send->label); i < send->len; i++)
		send->bytes[i] = pattern(&send->label, i);
	crowd->due++;
	return send;
}

static bool start(struct crowd *crowd, struct crowd_member *member, struct crowd_send *send)
{
	struct iovec iov = {send->bytes, send->len};
	struct fi_msg_tagged msg = {
		.msg_iov = &iov,
		.iov_count = 1,
		.addr = member->addr[send->to],
		.tag = (uint64_t)send->label.from << 32 | send->label.number,
		.context = send,
	};
	ssize_t ret = fi_tsendmsg(member->ep, &msg, send->flags | FI_COMPLETION);

	if (ret == -FI_EAGAIN) {
		member->delayed = send;
		return false;
	}
	check(crowd, ret, "fi_tsendmsg");
	member->delayed = NULL;
	return true;
}

/* Sends as many messages as the endpoint takes, within reason. Returns how many it took. */
static int send_some(struct crowd *crowd, uint32_t index)
{
	struct crowd_member *member = &crowd->members[index];
	struct crowd_send *send = member->delayed;
	int count = 0;
	uint32_t to;

	while (count < ENTRIES && !member->planned) {
		if (!send) {
			if (!crowd->options->plan(crowd, index, member->started, &to)) {
				member->planned = true;
				break;
			}
			send = prepare(crowd, member, index, to);
			member->started++;
		}
		if (!start(crowd, member, send))
			break;
		send = NULL;
		count++;
	}
	return count;
}

void crowd_turn(struct crowd *crowd)
{
	uint64_t time = fake_net_time();
	int any = 0;

	for (uint32_t i = 0; i < crowd->options->members; i++) {
		struct crowd_member *member = &crowd->members[i];

		if (member->away)
			continue;
		while (member->posted < member->receives)
			post(crowd, member,
			     allocate(1, sizeof(struct receive) + crowd->options->max_len));
		any += read_cq(crowd, i) + send_some(crowd, i);
	}
	if (any)
		crowd->last_progress = time;
	else if (time - crowd->last_progress > stall)
		crowd_fail(crowd, "it hangs: %lu messages are under way, %lu have come", crowd->due,
			   crowd->received);
	fake_net_advance(crowd_random(crowd) % (2 * crowd->options->tick));
	/* No member has anything to do: time moves on to the next event. */
	if (!any && fake_net_time() - crowd->last_progress > 10 * crowd->options->tick)
		fake_net_run_until(fake_net_next() == UINT64_MAX ? fake_net_time() + 1000000
								 : fake_net_next());
}

static bool is_finished(const struct crowd *crowd)
{
	for (uint32_t i = 0; i < crowd->options->members; i++) {
		const struct crowd_member *member = &crowd->members[i];

		if (!member->planned || member->delayed || member->completed < member->started)
			return false;
	}
	return !crowd->due;
}

void crowd_run(struct crowd *crowd)
{
	while (!is_finished(crowd))
		crowd_turn(crowd);
}

/* Opening and closing. */

static void start_world(struct crowd *crowd)
{
	const struct crowd_options *options = crowd->options;
	struct fake_net_config config;
	struct rlimit files;

	/* A few for each endpoint. */
	if (!getrlimit(RLIMIT_NOFILE, &files)) {
		files.rlim_cur = files.rlim_max;
		setrlimit(RLIMIT_NOFILE, &files);
	}
	fake_net_config_default(&config);
	config.seed = crowd_random(crowd);
	config.hosts = options->hosts;
	config.dgram_loss = options->dgram_loss;
	config.dgram_dup = options->dgram_loss / 2;
	config.limits.qp = options->qp ? options->qp : 1 << 20;
	config.thread_delay = options->members > 100 ? 100000 : 5000;
	if (options->cqe)
		config.limits.cqe = options->cqe;
	config.reuse_qp_num = crowd_random(crowd) % 2;
	config.close_cleans_cq = crowd_random(crowd) % 2;
	fake_net_start(&config);
}

static void open_fabric(struct crowd *crowd)
{
	struct fi_info *hints = fi_allocinfo();
	struct fi_provider *prov = prov_once();

	hints->caps = FI_MSG | FI_TAGGED;
	hints->ep_attr->type = FI_EP_RDM;
	hints->domain_attr->mr_mode = FI_MR_PROV_KEY | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED;
	check(crowd, prov->getinfo(FI_VERSION(1, 17), NULL, NULL, 0, hints, &crowd->list),
	      "getinfo");
	fi_freeinfo(hints);
	crowd->list->fabric_attr->api_version = FI_VERSION(1, 17);
	check(crowd, prov->fabric(crowd->list->fabric_attr, &crowd->fabric, NULL), "fabric");
	crowd->fabric->api_version = FI_VERSION(1, 17);
}

static const struct fi_info *find_info(struct crowd *crowd, uint32_t host)
{
	const struct fi_info *info;
	struct verve_addr addr;

	fake_net_host_addr(host, &addr);
	for (info = crowd->list; info; info = info->next) {
		const struct sockaddr_in *in = info->src_addr;

		if (info->addr_format == FI_SOCKADDR_IN && in &&
		    in->sin_addr.s_addr == addr.in.sin_addr.s_addr)
			return info;
	}
	crowd_fail(crowd, "getinfo says nothing of host %u", host);
}

static void name_member(const struct crowd *crowd, uint32_t index, struct sockaddr_in *name)
{
	struct verve_addr addr;

	fake_net_host_addr(index % crowd->options->hosts, &addr);
	*name = addr.in;
	name->sin_port = htons((uint16_t)(FIRST_PORT + index));
}

static void open_host(struct crowd *crowd, uint32_t index)
{
	struct crowd_host *host = &crowd->hosts[index];
	uint32_t members = crowd->options->members;
	struct fi_av_attr attr = {.type = FI_AV_TABLE, .count = members};

	host->info = fi_dupinfo(find_info(crowd, index));
	host->info->next = NULL;
	host->addr = allocate(members, sizeof(host->addr[0]));
	check(crowd, fi_domain(crowd->fabric, host->info, &host->domain, NULL), "fi_domain");
	check(crowd, fi_av_open(host->domain, &attr, &host->av, NULL), "fi_av_open");
	for (uint32_t i = 0; i < members; i++) {
		struct sockaddr_in name;

		name_member(crowd, i, &name);
		if (fi_av_insert(host->av, &name, 1, &host->addr[i], 0, NULL) != 1)
			crowd_fail(crowd, "fi_av_insert of member %u", i);
	}
}

static void open_member(struct crowd *crowd, uint32_t index)
{
	struct crowd_member *member = &crowd->members[index];
	struct crowd_host *host = &crowd->hosts[index % crowd->options->hosts];
	struct fi_cq_attr attr = {.format = FI_CQ_FORMAT_TAGGED, .size = crowd->options->cq_size};
	struct sockaddr_in name;

	member->addr = host->addr;
	member->receives = crowd->options->receives;
	member->sent = allocate(crowd->options->members, sizeof(member->sent[0]));
	member->place_of = allocate((size_t)crowd->options->members * crowd->options->rounds,
				    sizeof(member->place_of[0]));
	name_member(crowd, index, &name);
	memcpy(host->info->src_addr, &name, sizeof(name));
	check(crowd, fi_cq_open(host->domain, &attr, &member->cq, NULL), "fi_cq_open");
	check(crowd, fi_endpoint(host->domain, host->info, &member->ep, NULL), "fi_endpoint");
	check(crowd, fi_ep_bind(member->ep, &host->av->fid, 0), "bind av");
	check(crowd, fi_ep_bind(member->ep, &member->cq->fid, FI_TRANSMIT | FI_RECV), "bind cq");
	check(crowd, fi_enable(member->ep), "fi_enable");
}

void crowd_open(struct crowd *crowd, const struct crowd_options *options, uint64_t seed)
{
	*crowd = (struct crowd){
		.options = options,
		.seed = seed,
		.random = seed * 0x9e3779b97f4a7c15,
	};
	start_world(crowd);
	sim_log_reset(false);
	open_fabric(crowd);
	crowd->hosts = allocate(options->hosts, sizeof(crowd->hosts[0]));
	crowd->members = allocate(options->members, sizeof(crowd->members[0]));
	for (uint32_t i = 0; i < options->hosts; i++)
		open_host(crowd, i);
	for (uint32_t i = 0; i < options->members; i++)
		open_member(crowd, i);
}

/* Everybody else goes on while one closes. */
static void on_pause(void *arg)
{
	struct crowd *crowd = arg;
	uint32_t members = crowd->options->members, count = members < SHARE ? members : SHARE;

	for (uint32_t i = 0; i < count; i++, crowd->turns++)
		if (!crowd->members[crowd->turns % members].closed)
			read_cq(crowd, crowd->turns % members);
}

/* Receives that were posted too much are dropped. */
static void close_member(struct crowd *crowd, struct crowd_member *member)
{
	struct fi_cq_tagged_entry entry;
	struct crowd_send *send;
	struct receive *receive;

	member->closed = true;
	check(crowd, fi_close(&member->ep->fid), "fi_close of an endpoint");
	if (fi_cq_read(member->cq, &entry, 1) != -FI_EAGAIN)
		crowd_fail(crowd, "a completion too many");
	while ((receive = LIST_FIRST(&member->receives_posted))) {
		LIST_REMOVE(receive, link);
		free(receive);
		member->posted--;
	}
	if (member->posted)
		crowd_fail(crowd, "%u receives are lost", member->posted);
	check(crowd, fi_close(&member->cq->fid), "fi_close of a CQ");
	while ((send = member->unused)) {
		member->unused = send->next;
		free(send);
	}
	free(member->sent);
	free(member->place_of);
}

void crowd_close(struct crowd *crowd)
{
	char open[256];

	fake_net_on_pause(on_pause, crowd);
	for (uint32_t i = 0; i < crowd->options->members; i++)
		close_member(crowd, &crowd->members[i]);
	fake_net_on_pause(NULL, NULL);
	for (uint32_t i = 0; i < crowd->options->hosts; i++) {
		struct crowd_host *host = &crowd->hosts[i];

		check(crowd, fi_close(&host->av->fid), "fi_close of an AV");
		check(crowd, fi_close(&host->domain->fid), "fi_close of a domain");
		fi_freeinfo(host->info);
		free(host->addr);
	}
	check(crowd, fi_close(&crowd->fabric->fid), "fi_close of a fabric");
	fi_freeinfo(crowd->list);
	free(crowd->hosts);
	free(crowd->members);
	if (fake_net_leaks(open, sizeof(open)))
		crowd_fail(crowd, "left open: %s", open);
}
