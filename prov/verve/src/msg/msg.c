/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "msg/msg.h"

int verve_msg_init(struct verve_msg *msg)
{
	int ret;

	msg->starved = false;
	LIST_INIT(&msg->claimed);
	ret = verve_match_init(&msg->match[0]);
	if (ret)
		return ret;
	ret = verve_match_init(&msg->match[1]);
	if (ret)
		verve_match_fini(&msg->match[0]);
	return ret;
}

void verve_msg_fini(struct verve_msg *msg)
{
	verve_match_fini(&msg->match[0]);
	verve_match_fini(&msg->match[1]);
}
