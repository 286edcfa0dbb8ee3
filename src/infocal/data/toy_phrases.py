"""The words that the toy reviews are made of.

Alternatives stand between ``|``; tuples of four go by grade: awful, poor, fair, superb.
"""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["CLAUSES", "COMMON", "NEUTRAL", "PHRASES", "AspectPhrases", "Graded"]

Graded = tuple[str, str, str, str]


@dataclass(frozen=True, slots=True)
class AspectPhrases:
    """What can be said of one aspect.

    Attributes:
        topics: what "is great" or "is terrible".
        subjects: what does an act.
        nouns: the bare nouns that an adjective goes before.
        facts: whole clauses that name the aspect and judge nothing.
        acts: verb phrases, by grade.
        moments: when or where an act happens, by grade.
        proofs: short evidence that ends or begins a clause, by grade.
    """

    topics: str
    subjects: str
    nouns: str
    facts: str
    acts: Graded
    moments: Graded
    proofs: Graded


CLAUSES: dict[str, tuple[str, ...]] = {
    "plain": (
        "{subjects} {often} {acts} {moments}",
        "{subjects} {acts} {moments}, {opinions} {nouns}",
        "{subjects} {acts} {moments}, {adverbs} {opinions}",
        "{topics} {is} {adverbs} {opinions}, {proofs}",
        "{topics} {is} {opinions} - {proofs}",
        "{adverbs} {opinions} {nouns}, {proofs}",
        "{proofs}, {adverbs} {opinions} {nouns}",
        "{opinions} {nouns} that {acts} {moments}",
    ),
    "negated": (
        "{subjects} never {acts} {moments}",
        "{subjects} never once {acts} {moments}",
        "{subjects} hardly ever {acts} {moments}",
        "I [can't|cannot] say {subjects} {acts} {moments}",
        "I [don't|do not] find that {subjects} {acts} {moments}",
        "{topics} [isn't|is not|wasn't] {opinions} at all, {proofs}",
        "{topics} [is hardly|is anything but|is far from|was never] {opinions}, {proofs}",
        "[no|hardly] {opinions} {nouns} here, {proofs}",
    ),
}
"""A negated clause says one grade with the words of a grade on the other side; proofs are never denied."""

COMMON: dict[str, Graded] = {
    "opinions": (
        "terrible|dreadful|horrible|shocking|pathetic|hopeless|useless|laughable|miserable",
        "disappointing|mediocre|weak|flawed|poor|lacklustre|forgettable|shaky|questionable",
        "good|decent|solid|fine|respectable|pleasant|dependable|nice|likeable",
        "great|brilliant|superb|fantastic|flawless|perfect|wonderful|remarkable|stunning",
    ),
    "adverbs": (
        "utterly|downright|painfully|horribly|sadly",
        "sadly|rather|annoyingly|painfully|somewhat",
        "pleasantly|refreshingly|reassuringly|nicely|happily",
        "gloriously|amazingly|truly|incredibly|beautifully",
    ),
    "is": ("is|was|turned out|has been",) * 4,
    "often": (*("constantly|sadly|annoyingly|always",) * 2, *("reliably|happily|easily|always",) * 2),
}

NEUTRAL = (
    "I bought [it|this one|mine] in [March|early May|June|autumn] [online|at the mall|in town]",
    "[I|we] ordered it [on a Monday|on Friday night|last week|during my lunch break] [from my phone|at work]",
    "it is a [birthday|Christmas|graduation|wedding] present for my [sister|nephew|father|cousin|neighbour]",
    "my [sister|brother|mother|colleague|flatmate] [uses|owns|has] the [same|older|blue|larger] [model|one]",
    "I mostly [wear|use] it for [running|swimming|cycling|hiking] [on Saturdays|after work|in spring]",
    "it [rained|snowed|was windy|was cloudy] [the day|the week|the morning] I [unpacked it|opened it|set it up]",
    "in the box there [is|was] a [manual|leaflet|card|sticker] and a [cable|spare pin|cloth|pouch]",
    "the [manual|leaflet|booklet] is in [four|six|nine|eleven] languages, [mine|English] comes [first|last]",
    "I had a [different|silver|round|smaller] one [before this|for three years|until last summer]",
    "this is my [second|third|first|fourth] [watch|one] from this [maker|brand|shop]",
    "I set it up with my [phone|tablet|laptop] and [made|opened] an account [that evening|the same day]",
    "I have had it for [two|three|five|six] [weeks|months] [now|by now]",
    "I [work|live|study] [near the coast|in a big city|in the mountains|on the third floor]",
    "my [kids|parents|friends|students] [asked|wanted to know] [what it is|which model it is|who made it]",
    "I picked the [blue|black|green|grey|red] version [over|instead of] the [white|brown|orange|yellow] one",
    "we [took|brought] it along [to Norway|on a camping trip|to a conference] [in July|last month]",
)

PHRASES = {
    "battery": AspectPhrases(
        topics="the battery|battery life|its battery|this battery|the battery life|the battery inside",
        subjects="the battery|a full charge|one charge|its battery|a single charge|this battery",
        nouns="battery|battery life|battery pack",
        facts="the battery is the usual size|it takes the same battery as the old model|"
        "the charge port is on the left|my brother asked about battery life",
        acts=(
            "dies|runs flat|runs out|runs dry|drains to zero|goes empty|gives out",
            "fades|runs low|sags|dwindles|needs topping up|blinks red|shrinks",
            "lasts|holds out|carries on|keeps its juice|stays up|keeps ticking",
            "endures|keeps going|keeps its juice|runs on|powers through|stays alive",
        ),
        moments=(
            "before lunch|by noon|within the hour|after forty minutes|before breakfast ends|halfway to work",
            "by late afternoon|before the day ends|around teatime|before dinner|after one workout",
            "until dinner|through the workday|until bedtime|past the evening news|from dawn till dusk",
            "for two days|all weekend|for a week|for ages|from Monday to Friday|for days on end",
        ),
        proofs=(
            "flat again by noon|dead before lunch|two plugs a day|zero percent by ten",
            "plugged in every evening|red icon by teatime|a top-up every afternoon|drained after one workout",
            "still green at dinner|plugged in overnight only|half full at bedtime|one plug per day",
            "two days unplugged|charged once a week|a whole weekend unplugged|charger forgotten in a drawer",
        ),
    ),
    "screen": AspectPhrases(
        topics="the screen|the display|its screen|this display|the touchscreen|the screen itself",
        subjects="the screen|the display|its screen|this screen|the touchscreen|this display",
        nouns="screen|display|touchscreen",
        facts="the screen is round|the screen measures 1.4 inches|the display came with a plastic film|"
        "the screen locks after ten seconds|my cousin asked about the display",
        acts=(
            "flickers|goes black|smears|freezes|turns blank|glitches out",
            "dims|washes out|looks grainy|turns blurry|catches glare|looks dull",
            "stays readable|shows clear text|looks tidy|keeps its colours|stays legible",
            "glows|shines|sparkles|dazzles|stays razor sharp|looks like print",
        ),
        moments=(
            "in plain daylight|at the slightest tap|with one swipe|at full brightness|mid scroll",
            "in bright sun|from the side|under office lamps|near a window|through sunglasses",
            "in the sun|from most angles|under streetlights|on the train|at arm's length|in the shade",
            "in blazing sunshine|from any angle|down to the last pixel|even at midnight|across every menu",
        ),
        proofs=(
            "dead pixels everywhere|black after one swipe|lines across every icon|frozen at each tap",
            "glare near any window|grainy icons and menus|colours slightly washed|too dim outdoors",
            "text clear enough|colours close to life|readable in most light|icons easy to see",
            "razor sharp text|colours that pop|every pixel crisp|vivid in full sun",
        ),
    ),
    "sound": AspectPhrases(
        topics="the sound|the speaker|its sound|the audio|this speaker|the sound quality",
        subjects="the speaker|the sound|its speaker|the audio|this speaker|the ringtone",
        nouns="sound|speaker|audio",
        facts="the speaker is on the left side|the volume has ten steps|the sound menu is under settings|"
        "the ringtone is the standard one|a friend asked about the sound",
        acts=(
            "crackles|screeches|cuts out|distorts|buzzes|drops to silence",
            "rattles|hisses|sounds tinny|goes muffled|lacks bass|loses treble",
            "stays distinct|comes through|stays audible|carries well|handles speech",
            "sings|booms|fills the room|soars|rings out rich|stays crystal clear",
        ),
        moments=(
            "during calls|at half volume|with any song|at the first note|in the chorus|during alarms",
            "at higher volume|in quiet passages|on longer calls|with deep voices|in most podcasts",
            "on calls|over street noise|in the kitchen|for podcasts|at low volume|on the bus",
            "at top volume|with every song|down to the bass|without a hiss|in every chorus|note after note",
        ),
        proofs=(
            "static on every call|nothing but crackle|ears ringing after calls|callers hear only buzzing",
            "bass goes missing|tinny at higher volume|voices slightly muffled|faint hiss between songs",
            "voices easy to follow|calls clear enough|alarm heard next door|treble nicely balanced",
            "rich bass and treble|every note crystal clear|like a concert hall|music worth dancing to",
        ),
    ),
    "comfort": AspectPhrases(
        topics="the comfort|the fit|wearing comfort|the strap|this strap|the wristband",
        subjects="the strap|the wristband|this strap|its strap|this wristband|the band",
        nouns="strap|fit|wristband",
        facts="the strap is black|the strap comes in two lengths|the wristband has eleven holes|"
        "the wristband is made of silicone|my father asked about the strap",
        acts=(
            "cuts my skin|pinches|leaves welts|burns|chafes|causes a rash",
            "itches|digs in|rubs|feels stiff|slides around|feels sweaty",
            "sits well|feels light|stays put|bends nicely|rests flat",
            "feels like silk|hugs the wrist|feels weightless|disappears|cushions the wrist",
        ),
        moments=(
            "after ten minutes|on short runs|at the slightest bend|through the sleeve|within a mile",
            "after some hours|on warm days|at the keyboard|towards evening|under a jacket",
            "on my wrist|during walks|at my desk|under a sleeve|most of the day|while I type",
            "from morning to night|even in bed|on marathon runs|every waking hour|on bare skin",
        ),
        proofs=(
            "red welts every time|skin rubbed raw|numb fingers after minutes|bruised wrist by evening",
            "itchy on warm days|stiff around the wrist|slightly tight everywhere|marks on my skin",
            "soft around the edges|easy to adjust|snug while walking|my skin stays dry",
            "soft as silk|forgot I wore it|slept in it|like a second skin",
        ),
    ),
    "delivery": AspectPhrases(
        topics="the delivery|delivery|shipping|the shipping|the courier service|the delivery service",
        subjects="the parcel|the package|my order|the shipment|the delivery|the courier",
        nouns="delivery|shipping|courier service",
        facts="the parcel went through the depot in Leeds|the delivery was on a Tuesday|"
        "the parcel had a green label|I chose standard delivery|my aunt asked about the delivery",
        acts=(
            "vanished|got lost|went astray|sat forgotten|disappeared|went missing",
            "dragged on|came late|stalled|lagged behind|got held up|crawled along",
            "arrived|came|showed up|landed|reached me|got here",
            "arrived|came running|showed up|reached me|raced here|flew in",
        ),
        moments=(
            "for three weeks|in a wrong depot|two towns away|without any tracking|in a ditch",
            "by a few days|past the promised date|at the depot|after two reminders|despite express postage",
            "on schedule|as promised|on the stated day|within the week|in one piece",
            "the very next morning|two days early|within hours|overnight|ahead of schedule",
        ),
        proofs=(
            "three weeks in transit|box crushed and soaked|left in the rain|tracking dead for weeks",
            "a few days late|tracking rarely updated|two missed time slots|stuck at the depot",
            "right on schedule|tracking worked throughout|box in one piece|at my door as promised",
            "here the next morning|two days early|door to door overnight|tracked to the minute",
        ),
    ),
    "support": AspectPhrases(
        topics="the support|customer support|the support team|their help desk|customer service|the hotline",
        subjects="the support|customer support|the support team|the help desk|customer service|the hotline",
        nouns="support|customer service|help desk",
        facts="the support number is on the back page|the help desk is in Dublin|"
        "customer service has a web form|a colleague asked about the hotline",
        acts=(
            "hangs up|ignores emails|shouts back|refuses refunds|blames me|deletes tickets",
            "stalls|repeats scripts|replies slowly|passes me around|asks twice|answers vaguely",
            "answers|writes back|picks up|replies politely|sorts it out|explains things",
            "fixes everything|solves it|goes the extra mile|listens patiently|sends replacements",
        ),
        moments=(
            "on the phone|without a word|for months|at the first question|after one email",
            "for several days|with each ticket|over live chat|at busy hours|before any fix",
            "within a day|by email|after a short wait|on weekdays|on the first try",
            "within minutes|around the clock|with a smile|without being asked|even on Sundays|on the spot",
        ),
        proofs=(
            "tickets closed unread|hours on hold|hung up on twice|refund refused outright",
            "scripted replies only|a week per answer|passed between agents|vague answers by chat",
            "polite replies by email|answers within a day|agent knew the manual|ticket closed properly",
            "replacement sent within minutes|agents day and night|solved on the spot|called back on Sunday",
        ),
    ),
    "price": AspectPhrases(
        topics="the price|its price|the cost|the price tag|this price|value for money",
        subjects="the price|the price tag|its price|the cost|this price|the asking price",
        nouns="price|value for money|price tag",
        facts="the price is printed on the receipt|the price is the same in both shops|"
        "the price tag is on the box|the price is shown in euros|my flatmate asked about the price",
        acts=(
            "doubles|robs you|insults buyers|ruins you|shoots up|empties wallets",
            "stings|creeps up|runs high|tops rivals|climbs|exceeds my budget",
            "stays fair|matches rivals|suits my budget|adds up|fits the budget|makes sense",
            "beats every rival|saves a fortune|undercuts everyone|stays dirt cheap|crushes competitors",
        ),
        moments=(
            "at checkout|with hidden fees|for so little|without any discount|despite my coupon",
            "for what you get|next to rivals|with extras added|before tax|outside the sales",
            "for students|with the coupon|compared to others|even with tax|in the sale",
            "by a mile|all year round|even before discounts|with money to spare|coupon or not",
        ),
        proofs=(
            "double the usual cost|daylight robbery at checkout|hidden fees on top|money down the drain",
            "twenty euros too much|cheaper elsewhere last week|extras cost more|dearer than most rivals",
            "worth the money|fair for what's inside|within my budget|about what rivals ask",
            "half what rivals ask|a steal at checkout|bargain of the year|cheapest by a mile",
        ),
    ),
    "build": AspectPhrases(
        topics="the build|build quality|the casing|its build|the construction|the build quality",
        subjects="the casing|the frame|the case|the housing|its casing|the bezel",
        nouns="build|casing|construction",
        facts="the casing is grey|the frame is made of aluminium|the case has four screws|"
        "the housing is 11 mm thick|my nephew asked about the casing",
        acts=(
            "cracks|shatters|falls apart|snaps|breaks open|crumbles",
            "creaks|flexes|scratches|wobbles|feels hollow|shows gaps",
            "feels sturdy|holds together|resists scratches|shrugs off dust|stays tight",
            "survives drops|withstands knocks|stays spotless|feels like a tank|outlives hammers",
        ),
        moments=(
            "after one drop|within a week|on day one|under light pressure|in my pocket",
            "at the edges|under my thumb|around the buttons|near the crown|along the seam",
            "after some bumps|in daily use|against keys|in a bag|at the gym",
            "year after year|without one scratch|on building sites|like solid steel|through mud and rain",
        ),
        proofs=(
            "cracked on day one|broken after one drop|glue coming off everywhere|in pieces within a week",
            "gaps along the seam|creaky around the buttons|small scratches already|loose near the crown",
            "tight at the seams|small bumps left no mark|sturdy in daily use|buttons click firmly",
            "solid steel all over|tough as a tank|survived a staircase|spotless after a year",
        ),
    ),
}
