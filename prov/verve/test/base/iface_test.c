/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* FI_VERVE_IFACE: its items, and the ports and interfaces that they name. */
#include <criterion/criterion.h>

#include "base/iface.h"

static const struct verve_iface_port first = { "mlx5_0", 1 }, second = { "mlx5_0", 2 };

static bool has(const char *list, const struct verve_iface_port *port, const char *netdev)
{
	return verve_iface_list_has(list, port, netdev);
}

Test(iface, no_list_has_everything)
{
	cr_expect(has(NULL, &first, "eth0"));
	cr_expect(has(NULL, &first, ""));
}

Test(iface, item_is_an_interface_or_a_device_or_a_port)
{
	cr_expect(has("eth0", &first, "eth0"));
	cr_expect_not(has("eth0", &first, "eth01"));
	cr_expect_not(has("eth01", &first, "eth0"));
	cr_expect(has("mlx5_0", &first, "eth0"));
	cr_expect(has("mlx5_0", &second, "eth0"));
	cr_expect(has("mlx5_0:2", &second, "eth0"));
	cr_expect_not(has("mlx5_0:2", &first, "eth0"));
	cr_expect_not(has("mlx5_01", &first, "eth0"));
}

Test(iface, device_and_interface_are_both_meant)
{
	cr_expect(has("mlx5_0@eth0", &first, "eth0"));
	cr_expect_not(has("mlx5_0@eth0", &first, "eth1"));
	cr_expect_not(has("mlx5_1@eth0", &first, "eth0"));
	cr_expect(has("mlx5_0:2@eth0", &second, "eth0"));
	cr_expect_not(has("mlx5_0:2@eth0", &first, "eth0"));
}

Test(iface, list_has_what_one_of_its_items_is)
{
	cr_expect(has("eth1,mlx5_1@eth2,eth0", &first, "eth0"));
	cr_expect(has("eth1,mlx5_0@eth2", &first, "eth2"));
	cr_expect_not(has("eth1,mlx5_1@eth2", &first, "eth2"));
}

Test(iface, blanks_around_an_item_do_not_count)
{
	cr_expect(has("eth1, eth0", &first, "eth0"));
	cr_expect(has(" eth0 ,eth1", &first, "eth0"));
	cr_expect(has("eth1, mlx5_0@eth0 ", &first, "eth0"));
	cr_expect_not(has("eth1, ", &first, ""));
	cr_expect_not(has(" ", &first, ""));
}

/* A port without an interface has an empty name: no mistake in the list may name that. */
Test(iface, empty_items_name_nothing)
{
	static const char *const lists[] = { "", ",", "@", "mlx5_0@", "@eth0", ",,@,", "a@b@eth0" };

	for (size_t i = 0; i < sizeof(lists) / sizeof(*lists); i++) {
		cr_expect_not(has(lists[i], &first, ""), "%s", lists[i]);
		cr_expect_not(has(lists[i], &first, "eth0"), "%s", lists[i]);
	}
}

Test(iface, items_are_read_in_order)
{
	const char *list = "eth0,mlx5_0@eth1,";
	struct verve_iface iface;

	cr_assert(verve_iface_next(&list, &iface));
	cr_expect(verve_iface_is(&iface, &first, "eth0"));
	cr_expect_not(verve_iface_is_of_port(&iface, &first));
	cr_assert(verve_iface_next(&list, &iface));
	cr_expect(verve_iface_is_of_port(&iface, &first));
	cr_expect_not(verve_iface_is_port(&iface, &first));
	cr_assert(verve_iface_next(&list, &iface));
	cr_expect_eq(iface.name_len, 0);
	cr_expect_not(verve_iface_next(&list, &iface));
}
