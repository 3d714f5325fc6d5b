"""What Python's calendar says of time zones: the judge of every `--step` and `--tz`, by nothing that tallyd has."""

import collections
import datetime
import zoneinfo

UTC = datetime.timezone.utc
MINUTE, DAY = datetime.timedelta(minutes=1), datetime.timedelta(days=1)
HOURS = {"hour": 1, "3h": 3, "6h": 6, "12h": 12}
MONTHS = {"month": 1, "3mo": 3, "year": 12}
STEPS = ["minute", "15m", "hour", "3h", "6h", "12h", "day", "week", "month", "3mo", "year"]
# Zones whose clocks do something that others do not; see also tests/support/wall.c.
ODD_ZONES = ["UTC", "Europe/Berlin", "America/New_York", "Asia/Kolkata", "Asia/Kathmandu", "Australia/Lord_Howe",
             "America/Sao_Paulo", "Asia/Gaza", "America/Havana", "Pacific/Chatham", "Africa/Casablanca"]


def names():
    """The names of all zones that there are."""
    with open("/usr/share/zoneinfo/tzdata.zi", encoding="ascii") as file:
        return sorted(line.split()[1 if line[0] == "Z" else 2] for line in file if line[0] in "ZL")


def zone_of(name):
    return zoneinfo.ZoneInfo(name)


WEEKDAYS = ["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"]


def start(at, step, zone, week_start="monday"):
    """The start of the step that holds an instant, as an instant."""
    local = at.astimezone(zone)
    if step in ("minute", "15m", "hour"):  # the clock's own, however often it comes
        minutes = {"minute": 1, "15m": 15, "hour": 60}[step]
        floor = local.replace(tzinfo=None, second=0, microsecond=0)
        floor -= datetime.timedelta(minutes=(floor.hour * 60 + floor.minute) % minutes)
        begun = (floor - local.utcoffset()).replace(tzinfo=UTC)
        while begun.astimezone(zone).utcoffset() != local.utcoffset():  # the clock was changed within it: by half an hour
            begun += MINUTE
        return begun
    if step in HOURS:
        first = datetime.datetime(local.year, local.month, local.day, local.hour // HOURS[step] * HOURS[step])
    elif step in MONTHS:
        first = datetime.datetime(local.year, (local.month - 1) // MONTHS[step] * MONTHS[step] + 1, 1)
    else:
        first = datetime.datetime(local.year, local.month, local.day)
        first -= (local.weekday() - WEEKDAYS.index(week_start)) % 7 * DAY if step == "week" else 0 * DAY
    return first.replace(tzinfo=zone).astimezone(UTC)


def text(at, zone):
    """As tallyd prints an instant."""
    if zone.key == "UTC":
        return f"{at:%Y-%m-%dT%H:%M:%SZ}"
    return at.astimezone(zone).isoformat()


def chart(times, step, zone, week_start="monday"):
    """{start of a step, as text: how many of the times are in it}"""
    return dict(collections.Counter(text(start(at, step, zone, week_start), zone) for at in times))
