"""Words for titles, companies and publishers."""

from caudal.generate.listing import words

ADJECTIVES = words(
    """
    Ancient Bitter Black Blind Blue Brave Bright Broken Burning Careless Common Crooked Crystal
    Curious Dark Dead Deep Distant Double Dusty Early Empty Endless Eternal Faithful Fallen False
    Familiar Final First Forbidden Forgotten Fragile Frozen Gentle Gilded Glass Golden Good Grand
    Great Green Grey Happy Hidden Hollow Holy Honest Hungry Idle Immortal Inner Invisible Iron Last
    Late Little Living Lonely Long Lost Lucky Mad Magic Midnight Missing Modern Naked New Northern
    Old Open Ordinary Other Painted Pale Paper Patient Perfect Plain Private Quiet Red Restless
    Ruined Sacred Salt Savage Scarlet Second Secret Silent Silver Simple Sleeping Slow Small
    Southern Stolen Stone Strange Sudden Sweet Tender Terrible Third Tired True Unfinished Unknown
    Unlikely Velvet Violent Wandering Warm White Wicked Wild Winter Wise Wooden Young
    """
)

NOUNS = words(
    """
    Accident Affair Almanac Angel Answer Archive Army Atlas Autumn Bargain Bell Bird Blessing Border
    Boy Bridge Brother Candle Captain Castle Chapel Child City Clock Cloud Coast Colony Compass
    Confession Country Court Crossing Crown Daughter Dawn Debt Desert Diary Doctor Dream Dust Echo
    Empire Engine Evening Exile Fable Family Farewell Father Feast Field Fire Flight Flood Forest
    Fortune Friend Game Garden Gate Ghost Gift Girl Harbor Harvest Heart Heir History Holiday
    Horizon Horse Hour House Hunter Inheritance Island Journey Judge Keeper Kingdom Lady Lake Lamp
    Language Legacy Lesson Letter Library Light Lion Lover Machine Map Market Marriage Mask Master
    Memory Message Minister Miracle Mirror Mission Moon Morning Mother Mountain Murder Music Night
    Nurse Ocean Orchard Orphan Palace Passage Pilot Pilgrim Planet Poet Portrait Promise Queen
    Question Rain Rebel Rescue Revolution River Road Rose Sailor School Season Secret Servant Shadow
    Sister Sky Snow Soldier Song Spring Star Station Stranger Storm Street Summer Tale Teacher
    Temple Theatre Thief Tide Tower Train Traveller Treasure Tree Trial Valley Village Voice Voyage
    Wager Wall War Watch Water Wedding Widow Window Witness Wolf Woman Word World Year
    """
)

PLACES = words(
    """
    Alexandria Algiers Amalfi Amsterdam Antwerp Asunción Athens Avignon Baghdad Barcelona Belfast
    Bengal Berlin Bogotá Bohemia Bologna Bombay Bordeaux Boston Brittany Bruges Budapest Burgundy
    Cádiz Cairo Calcutta Cartagena Casablanca Chicago Coimbra Cologne Connemara Constantinople
    Córdoba Cornwall Crete Cuzco Damascus Delhi Dresden Dublin Edinburgh Flanders Florence Galicia
    Galway Geneva Genoa Ghent Glasgow Granada Guadalajara Hamburg Havana Helsinki Istanbul Jerusalem
    Kentucky Kraków Kyoto Lahore Leipzig León Lima Lisbon Liverpool London Lyon Madrid Malta Manila
    Marrakesh Marseille Memphis Mexico Milan Missouri Montana Montevideo Moscow Málaga Nantes Naples
    Nevada Normandy Odessa Oxford Palermo Paris Patagonia Pernambuco Philadelphia Porto Prague
    Provence Quebec Quito Riga Rome Rosario Rotterdam Salamanca Salem Salta Salzburg Samarkand
    Santiago Saragossa Savannah Seville Shanghai Sicily Siena Smyrna Stockholm Tangier Texas
    Thessaly Toledo Trieste Tripoli Tucumán Turin Tuscany Ushuaia Utrecht Valencia Valparaíso Venice
    Vermont Verona Vienna Vilnius Warsaw Wyoming York Zanzibar Zürich
    """
)

COMPANY_ENDINGS = (
    "Films",
    "Pictures",
    "Productions",
    "Entertainment",
    "Cinema",
    "Studios",
    "Media Group",
    "Film Fund",
    "Filmproduktion",
    "Producciones",
    "Cine S.A.",
    "Brothers, Inc.",
    "Company, The",
    "Television",
    "& Sons' Pictures",
    "Cinématographique",
    '"Second Unit" Films',
    "Film\\Video",
)

PUBLISHER_ENDINGS = (
    "Press",
    "Books",
    "& Sons",
    "University Press",
    "Publishing",
    "House",
    "Classics",
    "Editions",
    "Éditions",
    "Publishers, Inc.",
    "& Company, Ltd.",
    "Paperbacks",
    "Library",
    '"Little Lamp" Books',
)
